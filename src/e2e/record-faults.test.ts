import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DSC } from '../testing/dsc-processes.js'
import { needsStrace } from '../testing/needs.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

/** What SQLite asks the kernel for, outside Node's own calls, which failing-calls.test.ts covers. */
const CALLS = [
  ['', 'openat'],
  ['', 'pread64'],
  ['-wal', 'openat'],
  ['-wal', 'pwrite64'],
  ['-shm', 'openat'],
  ['-shm', 'ftruncate'],
  ['-shm', 'pwrite64'],
] as const
const WORDS = ['prepare', 'flowers', '--task', 't'] as const

/** Runs dsc while the kernel refuses every such call for a file of the record. */
async function runRefused(world: World, suffix: string, call: string, error: string) {
  const trace = join(world.directory, 'trace')
  const env = { ...process.env, XDG_CACHE_HOME: join(world.directory, 'xdg') }
  const traced = ['-f', '-qq', '-o', trace, '-P', `${world.recordPath}${suffix}`]
  const refusing = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}`, ...DSC, ...WORDS]
  const ended = await new Promise<{ code: number; stderr: string }>((resolve) =>
    execFile('strace', [...traced, ...refusing], { cwd: world.directory, env }, (failure, _, stderr) =>
      resolve({ code: Number(failure?.code ?? 0), stderr }),
    ),
  )
  assert.match(
    readFileSync(trace, 'utf8'),
    /INJECTED/,
    `no ${call} of ${suffix} was refused: ${ended.stderr}`,
  )
  return ended
}

for (const error of ['EIO', 'ENOSPC'])
  test(`a record that the kernel refuses with ${error} is a failure with a hint, and loses nothing`, {
    skip: needsStrace(),
  }, async (context) => {
    const world = await makeWorld(context, { datasets: { flowers: { source: './flowers' } } })
    await writeTree(join(world.directory, 'flowers'), { 'a.txt': Buffer.from('a') })
    assert.equal((await world.dsc(...WORDS)).code, 0)
    for (const [suffix, call] of CALLS) {
      const { code, stderr } = await runRefused(world, suffix, call, error)
      const told = `${call} of record.db${suffix}: ${stderr}`
      assert.ok(code === 6 || code === 11, told)
      assert.match(stderr, /record sqlite:.*\n {2}try: /, told)
      assert.equal((await world.dsc('status')).code, 0, told)
    }
    const { copies } = JSON.parse((await world.dsc('status', '--json')).stdout)
    assert.equal(copies.length, 1)
    assert.equal((await world.dsc('verify', 'flowers')).code, 0)
  })
