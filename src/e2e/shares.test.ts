import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeWorld, type World } from '../testing/world.js'

const SHARES = { 'account:vision': 50, 'account:nlp': 50 }
const NAMES = ['a', 'b', 'c', 'd', 'e'] as const

/** A node of four places, two of them vision's and two nlp's, and five datasets. */
async function makeSharedNode(context: TestContext): Promise<World> {
  const world = await makeWorld(context, {
    cache: { maxDatasets: 4, shares: SHARES },
    datasets: Object.fromEntries(NAMES.map((name) => [name, { source: `./data/${name}` }])),
  })
  for (const name of NAMES) {
    await mkdir(join(world.directory, 'data', name), { recursive: true })
    await writeFile(join(world.directory, 'data', name, 'x'), name.repeat(5000))
  }
  return world
}

function prepareFor(world: World, account: string, ...words: readonly string[]) {
  return world.start(['prepare', ...words, '--task', `${account}-job`], {
    environment: { SLURM_JOB_ACCOUNT: account },
  }).finished
}

const held = (world: World) =>
  world
    .query<{ dataset: string }>(`SELECT dataset FROM copies WHERE state = 'ready' ORDER BY dataset`)
    .map(({ dataset }) => dataset)

test('a share borrows what another leaves unused, and gives it back when that one asks', async (context) => {
  const world = await makeSharedNode(context)
  for (const name of ['a', 'b', 'c', 'd']) {
    assert.equal((await prepareFor(world, 'nlp', name)).code, 0)
  }
  const before = JSON.parse((await world.dsc('status', '--json')).stdout)
  const [vision, nlp] = before.nodes[0].usage.shares
  assert.deepEqual([vision.party, vision.usedDatasets, vision.guaranteedDatasets], ['account:vision', 0, 2])
  assert.deepEqual([nlp.party, nlp.usedDatasets], ['account:nlp', 4])
  // As long as nlp's jobs read what is borrowed, nothing can be had; the refusal says who has it.
  const refused = await prepareFor(world, 'vision', 'e')
  assert.equal(refused.code, 5, refused.stderr)
  assert.match(refused.stderr, /share: account:nlp takes .* \(50%\) are guaranteed to it/)
  assert.match(refused.stderr, /share: account:vision takes 0 B; /)
  assert.match(refused.stderr, /held: a .*leased by nlp-job/)
  assert.equal((await world.dsc('release', '--all', '--task', 'nlp-job')).code, 0)
  const plan = JSON.parse(
    (
      await world.start(['prepare', 'e', '--plan', '--json'], {
        environment: { SLURM_JOB_ACCOUNT: 'vision' },
      }).finished
    ).stdout,
  )
  assert.deepEqual(
    plan.evictions.map(({ dataset, reason }: { dataset: string; reason: string }) => [dataset, reason]),
    [['a', 'least recently used, borrowed by account:nlp']],
  )
  assert.equal((await prepareFor(world, 'vision', 'e')).code, 0)
  assert.deepEqual(held(world), ['b', 'c', 'd', 'e'])
  const text = await world.dsc('status')
  assert.match(text.stdout, /SHARE +NODE +OF NODE/)
  assert.match(text.stdout, /account:vision +node-a +50%/)
})

test('a copy counts for its last user; a prefetch takes no guaranteed room', async (context) => {
  const world = await makeSharedNode(context)
  for (const name of ['a', 'b']) await prepareFor(world, 'nlp', name)
  for (const name of ['c', 'd']) await prepareFor(world, 'vision', name)
  for (const account of ['nlp', 'vision']) await world.dsc('release', '--all', '--task', `${account}-job`)
  const prefetch = () => prepareFor(world, 'vision', 'e', '--prefetch')
  assert.equal((await prefetch()).code, 5)
  assert.deepEqual(held(world), ['a', 'b', 'c', 'd'])
  // A warm prepare of nlp's copy: vision has three now, and borrows one.
  await prepareFor(world, 'vision', 'a')
  await world.dsc('release', '--all', '--task', 'vision-job')
  assert.equal((await prefetch()).code, 0)
  assert.deepEqual(held(world), ['a', 'b', 'd', 'e'])
})
