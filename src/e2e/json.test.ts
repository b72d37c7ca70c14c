import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createOutputSchema, OUTPUT_LINES, OUTPUTS } from '../cli/json/output-schemas.js'
import { makeWorld, writeTree } from '../testing/world.js'

type Output = keyof typeof OUTPUTS

/** Commands in an order in which each has something to say, and the output that each must have. */
const COMMANDS: readonly (readonly [Output, readonly string[]])[] = [
  ['init', ['init', '--dry-run', '--config', 'other.yaml']],
  ['self', ['self']],
  ['config', ['config']],
  ['doctor', ['doctor']],
  ['doctor --exit-codes', ['doctor', '--exit-codes']],
  ['prepare --plan', ['prepare', 'flowers', '--plan']],
  ['prepare', ['prepare', 'flowers', '--task', 't']],
  ['prepare', ['prepare', 'flowers', '--task', 'u']],
  ['dataset add', ['dataset', 'add', 'more', 'file:///nowhere/']],
  ['dataset ls', ['dataset', 'ls']],
  ['dataset rm', ['dataset', 'rm', 'more']],
  ['dataset show', ['dataset', 'show', 'flowers']],
  ['lock', ['lock', 'flowers']],
  ['status', ['status']],
  ['leases', ['leases']],
  ['hint', ['hint', 'flowers']],
  ['why', ['why', 'flowers']],
  ['verify', ['verify', 'flowers']],
  ['unlock', ['unlock', 'flowers']],
  ['release', ['release', '--all', '--task', 't']],
  ['release', ['release', 'flowers', '--task', 'u']],
  ['why', ['why', 'flowers']],
  ['evict', ['evict', 'flowers', '--dry-run']],
  ['evict', ['evict', 'flowers', '--yes']],
  ['cleanup', ['cleanup']],
  ['adopt --dry-run', ['adopt', 'birds', '--dry-run']],
  ['adopt', ['adopt', 'birds']],
  ['history', ['history']],
  ['why', ['why', 'flowers']],
]

test('what commands print with --json is what the schema says, and all of it is tried', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/1.txt': 'a rose', 'birds/1.txt': 'tweet' })
  await world.configure({ datasets: { flowers: { source: `file://${world.directory}/flowers/` } } })
  for (const [name, words] of COMMANDS) {
    const { code, stdout, stderr } = await world.dsc(...words, '--json')
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    const { error } = OUTPUTS[name].safeParse(JSON.parse(stdout))
    assert.equal(error, undefined, `${words.join(' ')} printed ${stdout}`)
  }
  const { code, stderr } = await world.dsc('why', 'flour', '--json')
  assert.equal(code, 5)
  OUTPUTS.error.parse(JSON.parse(stderr))
  const tried = new Set<Output>(['error', ...COMMANDS.map(([name]) => name)])
  assert.deepEqual(
    Object.keys(OUTPUTS).filter((name) => !tried.has(name as Output)),
    [],
  )
})

test('--ndjson prints one object a line, the same as --json', async (context) => {
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
    for (const line of lines) OUTPUT_LINES[command].parse(line)
    if (command === 'status') {
      assert.deepEqual(
        lines.map((line) => (line as { type: string }).type),
        ['node', 'copy', 'lease', 'event', 'event'],
      )
    } else assert.deepEqual(lines, JSON.parse((await world.dsc(command, '--json')).stdout))
  }
  const { code, stderr } = await world.dsc('leases', '--ndjson', '--dataset', 'flour')
  assert.equal(code, 5)
  OUTPUTS.error.parse(JSON.parse(stderr))
})

test('the published schema is the one that dsc prints', async () => {
  const path = fileURLToPath(new URL('../../docs/reference/dsc-output.schema.json', import.meta.url))
  assert.deepEqual(
    JSON.parse(await readFile(path, 'utf8')),
    createOutputSchema(),
    `write it anew: node bin/dsc.js self --schemas > ${join('docs/reference', 'dsc-output.schema.json')}`,
  )
})
