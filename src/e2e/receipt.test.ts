import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ACCOUNT_ANSWERS } from '../cli/answers/answer-schemas.js'
import { OutputChecker } from '../testing/check-outputs.js'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld } from '../testing/world.js'

async function makeFlowers(context: TestContext) {
  const world = await makeWorld(context, { datasets: { flowers: { source: './data' } } })
  await mkdir(join(world.directory, 'data'))
  const file = join(world.directory, 'data', 'rose')
  await writeFile(file, 'a rose')
  return { world, file }
}

test('a receipt names version and source, outlasts the copy, and what it says is proven again', async (context) => {
  const { world, file } = await makeFlowers(context)
  const outputs = new OutputChecker(ACCOUNT_ANSWERS)
  await world.dsc('prepare', 'flowers', '--task', 'slurm:4711') // staged
  await world.dsc('prepare', 'flowers', '--task', 'slurm:4711') // warm
  const [copy] = world.query<{ version: string; path: string }>('SELECT version, path FROM copies')
  const { receipt } = (await outputs.run(world, 'receipt', ['receipt', '4711'])) as {
    receipt: { distribution: Record<string, unknown>[]; 'dsc:task': string }
  }
  assert.equal(receipt['dsc:task'], 'slurm:4711')
  assert.equal(receipt.distribution.length, 2) // one object, and the files in it
  const [object] = receipt.distribution
  assert.equal(object?.sha256, copy?.version)
  assert.equal(object?.contentUrl, `file://${world.directory}/data`)
  assert.equal(object?.['dsc:contentBytes'], 6)
  const path = join(world.directory, 'receipt.json')
  await writeFile(path, (await world.dsc('receipt', '4711')).stdout)

  const whole = (await outputs.run(world, 'receipt --verify', ['receipt', '4711', '--verify'])) as {
    isProven: boolean
    datasets: { source: unknown; here: unknown }[]
  }
  assert.ok(whole.isProven)
  assert.deepEqual(whole.datasets[0]?.source, { state: 'same', provenBy: 'size-and-time' })
  assert.deepEqual(whole.datasets[0]?.here, { checkedFiles: 1, checkedBytes: 6, damages: 0 })

  // One source of an edited receipt is unusable: the rest is proven all the same.
  const edited = JSON.parse(await readFile(path, 'utf8'))
  edited.distribution[0]['dsc:definition'].source = 'flowers'
  const editedPath = join(world.directory, 'edited.json')
  await writeFile(editedPath, JSON.stringify(edited))
  const unusable = await world.dsc('receipt', editedPath, '--verify')
  assert.match(
    unusable.stdout,
    /^flowers \w+: available\n {2}the source cannot be read: .*it has no scheme\n/,
  )
  assert.equal(unusable.code, 0, unusable.stderr)

  // The source changes: the copy still has it. A byte of the copy changes: nobody has.
  await writeFile(file, 'a thistle')
  const changed = await succeeds(world.dsc('receipt', path, '--verify'))
  assert.match(changed.stdout, /available\n {2}the source has changed: .*\n {2}the copy here is whole/)
  const copied = join(copy!.path, 'rose')
  await rm(copied)
  await writeFile(copied, 'a ruse')
  const damaged = await world.dsc('receipt', path, '--verify')
  assert.equal(damaged.code, 4)
  assert.match(damaged.stdout, /NOT available here/)
  assert.match(damaged.stderr, /slurm:4711 used data that is no longer available here: flowers/)
  await world.dsc('release', '--all', '--task', 'slurm:4711')
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 0)
  const gone = await world.dsc('receipt', '4711', '--verify')
  assert.equal(gone.code, 4)
  assert.match(gone.stderr, /data that is no longer available here: flowers/)
  await outputs.run(world, 'report', ['report'])
  outputs.end()
})

test('what is no receipt, and a job that nobody knows, are told', async (context) => {
  const { world } = await makeFlowers(context)
  const unknown = await world.dsc('receipt', 'nobody')
  assert.equal(unknown.code, 4)
  assert.match(unknown.stderr, /the history knows no dataset that a job nobody used/)
  const path = join(world.directory, 'receipt.json')
  for (const [text, says] of [
    ['{}', /expected a receipt that `dsc receipt` wrote/],
    ['{', /receipt\.json: /],
    [
      JSON.stringify({
        'dsc:task': 't',
        distribution: [{ '@type': 'cr:FileObject', name: 'x', sha256: '../..' }],
      }),
      /expected a "name" and a "sha256" of 64 hexadecimal digits/,
    ],
  ] as const) {
    await writeFile(path, text)
    const { code, stderr } = await world.dsc('receipt', path, '--verify')
    assert.equal(code, 2, await readFile(path, 'utf8'))
    assert.match(stderr, says)
    assert.doesNotMatch(stderr, /internal error/)
  }
})
