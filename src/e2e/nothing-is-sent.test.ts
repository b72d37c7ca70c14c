import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DSC } from '../testing/dsc-processes.js'
import { needsStrace } from '../testing/needs.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

/** The families of the sockets that dsc and its threads open, as strace names them. */
async function traceSockets(world: World, words: readonly string[]): Promise<ReadonlySet<string>> {
  const output = join(world.directory, 'trace')
  const env = { ...process.env, XDG_CACHE_HOME: join(world.directory, 'xdg'), DSC_RETRY_FOR: '1s' }
  const traced = ['-f', '-e', 'trace=socket', '-o', output, ...DSC, ...words]
  await new Promise((resolve) => execFile('strace', traced, { cwd: world.directory, env }, resolve))
  const text = readFileSync(output, 'utf8')
  assert.match(text, /exited with/)
  return new Set([...text.matchAll(/socket\((AF_\w+)/g)].map(([, family]) => family!))
}

test('dsc opens no internet socket unless a source is on the internet', {
  skip: needsStrace(),
}, async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/1.txt': 'a rose' })
  const prepare = ['prepare', `file://${world.directory}/flowers/`, '--task', 't']
  for (const words of [['--version'], ['status'], prepare, prepare]) {
    const families = await traceSockets(world, words)
    assert.deepEqual(
      [...families].filter((family) => family !== 'AF_UNIX'),
      [],
      words.join(' '),
    )
  }
  assert.equal((await world.dsc(...prepare)).code, 0) // it did what it is traced for
  const remote = await traceSockets(world, ['prepare', 'http://127.0.0.1:9/1.txt', '--task', 't'])
  assert.ok(remote.has('AF_INET'), 'the trace does not show sockets')
})
