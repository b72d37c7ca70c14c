import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { CommandUnknownOpts as Command } from 'commander'
import { ANSWER_LINES, ANSWERS } from '../cli/answers/answer-schemas.js'
import { CACHE_ANSWERS } from '../cli/answers/cache-answers.js'
import type { CliContext } from '../cli/context.js'
import { loadProgram } from '../cli/program.js'
import { OutputChecker } from '../testing/check-outputs.js'
import { makeKeyPair, makeRelease, OWN_NAME, pretendDsc } from '../testing/signed-release.js'
import { makeWorld, writeTree } from '../testing/world.js'

type Output = keyof typeof CACHE_ANSWERS

const EVERY_SETTING =
  '--max-datasets 9 --max-percent 80 --min-free 1GiB --low-water-percent 70 --node n --record sqlite:///r.db'.split(
    ' ',
  )

/** Commands in an order in which each has something to say, and the output that each must have. */
const COMMANDS: readonly (readonly [Output, readonly string[]])[] = [
  ['init', ['init', '--dry-run', '--config', 'other.yaml']],
  ['init', ['init', '--dry-run', '--config', 'other.yaml', '--cache-root', 'here']], // on no suggested disk
  ['init', ['init', '--dry-run', '--config', 'other.yaml', ...EVERY_SETTING]],
  ['setup', ['setup', '--dry-run', '--cache-root', '/srv/dsc', '--max-percent', '70']],
  ['self', ['self']],
  ['config', ['config']],
  ['doctor', ['doctor']],
  ['doctor --exit-codes', ['doctor', '--exit-codes']],
  ['bench', ['bench']],
  ['prepare --plan', ['prepare', 'flowers', '--plan']],
  ['prepare', ['prepare', 'flowers', '--task', 't']],
  ['prepare', ['prepare', 'flowers', '--task', 'u']],
  ['prepare <dataset> <dataset>', ['prepare', 'flowers', './birds', '--task', 'u']],
  ['dataset add', ['dataset', 'add', 'more', 'file:///nowhere/']],
  ['dataset ls', ['dataset', 'ls']],
  ['dataset rm', ['dataset', 'rm', 'more']],
  ['dataset show', ['dataset', 'show', 'flowers']],
  ['lock', ['lock', 'flowers']],
  ['status', ['status']],
  ['leases', ['leases']],
  ['hint', ['hint', 'flowers']],
  ['hint', ['hint', 'flowers', '--affinity']],
  ['why', ['why', 'flowers']],
  ['verify', ['verify', 'flowers']],
  ['unlock', ['unlock', 'flowers']],
  ['release', ['release', '--all', '--task', 't']],
  ['release', ['release', 'flowers', '--task', 'u']],
  ['why', ['why', 'flowers']],
  ['evict', ['evict', 'flowers', '--dry-run']],
  ['evict', ['evict', 'flowers', '--yes']],
  ['undo --list', ['undo', '--list']],
  ['undo', ['undo']],
  ['evict', ['evict', 'flowers', '--yes', '--no-undo']],
  ['cleanup', ['cleanup']],
  ['adopt --dry-run', ['adopt', 'birds', '--dry-run']],
  ['adopt', ['adopt', 'birds']],
  ['history', ['history']],
  ['why', ['why', 'flowers']],
  ['cleanup --print-systemd', ['cleanup', '--print-systemd']],
  ['cleanup --print-cron', ['cleanup', '--print-cron']],
  ['config --schema', ['config', '--schema']],
  ['self --schemas', ['self', '--schemas']],
  ['completion', ['completion', 'bash']],
  ['completion install', ['completion', 'install', 'fish']],
  ['completion --list', ['completion', '--list', 'datasets']],
]

test('what commands print with --json is what the schema says, and all of it is tried', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/1.txt': 'a rose', 'birds/1.txt': 'tweet' })
  await world.configure({ datasets: { flowers: { source: `file://${world.directory}/flowers/` } } })
  const outputs = new OutputChecker(CACHE_ANSWERS)
  for (const [name, words] of COMMANDS) await outputs.run(world, name, words)
  const key = makeKeyPair(join(world.directory, 'key'))
  const [release, executable] = [join(world.directory, 'release'), join(world.directory, 'dsc')]
  await makeRelease(release, { key, executable: pretendDsc('0.2.0') })
  await cp(join(release, OWN_NAME), executable)
  const update = ['self', 'update', release, '--key', key.publicKey, '--executable', executable]
  await outputs.run(world, 'self update', update)
  const { lease } = (await outputs.run(world, 'prepare', ['prepare', 'flowers', '--task', 'v'])) as {
    lease: { leaseId: string }
  }
  await outputs.run(world, 'release --lease', ['release', '--lease', lease.leaseId])
  const refused = await world.dsc('prepare', `file://${world.directory}/nowhere/`, '--task', 't', '--json')
  const { error } = outputs.check('error', refused.stderr) as { error: { id: string } }
  await outputs.run(world, 'why <id>', ['why', error.id])
  const { code, stderr } = await world.dsc('why', 'flour', '--json')
  assert.equal(code, 4)
  outputs.check('error', stderr)
  outputs.end()
})

/** Commands whose result is no object of ours: that of the command they run. */
const WITHOUT_OUTPUT = ['run']

test('every command has a schema', async () => {
  const found: string[] = []
  const walk = (command: Command, words: readonly string[]) => {
    if (command.commands.length === 0) found.push(words.join(' '))
    for (const child of command.commands) walk(child, [...words, child.name()])
  }
  walk(await loadProgram({} as CliContext), [])
  const described = new Set([...Object.keys(ANSWERS), ...WITHOUT_OUTPUT])
  assert.deepEqual(
    found.filter((words) => !described.has(words)),
    [],
  )
})

test('--ndjson prints one answer a line, the same as --json', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/1.txt': 'a rose' })
  await world.configure({ datasets: { flowers: { source: `file://${world.directory}/flowers/` } } })
  await world.dsc('prepare', 'flowers', '--task', 't')
  for (const command of ['status', 'leases', 'history'] as const) {
    const { stdout, stderr } = await world.dsc(command, '--ndjson')
    assert.equal(stderr, '')
    const lines: unknown[] = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    for (const line of lines) ANSWER_LINES[`${command} --ndjson`].parse(line)
    if (command === 'status') {
      assert.deepEqual(
        lines.map((line) => (line as { type: string }).type),
        ['node', 'copy', 'lease', 'event', 'event', 'event'],
      )
    } else {
      const answer = JSON.parse((await world.dsc(command, '--json')).stdout)
      const rows = (command === 'leases' ? answer.leases : answer.events) as object[]
      assert.deepEqual(
        lines,
        rows.map((row) => ({ dsc: 1, ...row })),
      )
    }
  }
  const { code, stderr } = await world.dsc('leases', '--ndjson', '--dataset', 'flour')
  assert.equal(code, 4)
  ANSWERS.error.parse(JSON.parse(stderr))
})
