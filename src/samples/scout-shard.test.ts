import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeTestFolder, sampleBytes } from '../testing/sample-folder.js'
import { readShardMembers } from './read-shard-members.js'
import { planStretches } from './scout-shard.js'

const MEMBERS = 300

/** Makes a shard whose member `i` has the bytes `bytesOf(i)`. */
function makeShard(
  context: TestContext,
  bytesOf: (i: number) => Buffer,
  { format = 'gnu', nameOf = (i: number) => `${i}.bin` } = {},
): Buffer {
  const folder = join(makeTestFolder(context), 'in')
  mkdirSync(folder, { recursive: true })
  const names = Array.from({ length: MEMBERS }, (_, i) => nameOf(i))
  for (const [i, name] of names.entries()) writeFileSync(join(folder, name), bytesOf(i))
  execFileSync('tar', [`--format=${format}`, '-C', folder, '-cf', join(folder, 'shard'), ...names])
  return readFileSync(join(folder, 'shard'))
}

/** Reads the members of a shard from a store that answers all concurrent requests in one round. */
async function readInRounds(shard: Buffer, stretches: number) {
  const asked: (() => void)[] = []
  let [rounds, readBytes] = [0, 0]
  const read = (offset: number, length: number) => {
    assert.ok(offset + length <= shard.length, 'no range leads out of the shard')
    readBytes += length
    if (asked.length === 0)
      setImmediate(() => {
        rounds += 1
        for (const answer of asked.splice(0)) answer()
      })
    return new Promise<Buffer>((resolve) => {
      asked.push(() => resolve(shard.subarray(offset, offset + length)))
    })
  }
  const found = await readShardMembers(shard.length, read, { stretches, maxShare: Number.POSITIVE_INFINITY })
  return { members: [...found!.members], damage: found!.damage?.message, rounds, readBytes }
}

const equal = (i: number) => sampleBytes(i, 10_000)
const unequal = (i: number) => sampleBytes(i, 1000 + ((i * 7919) % 30_000))
const longNames = (i: number) => `${'n'.repeat(i % 2 === 0 ? 150 : 3)}-${i}.bin`

for (const { name, bytesOf, options, share } of [
  { name: 'equal members', bytesOf: equal, options: {}, share: 1 / 6 },
  { name: 'unequal members', bytesOf: unequal, options: {}, share: 1 / 4 },
  {
    name: 'members with pax headers',
    bytesOf: unequal,
    options: { format: 'pax', nameOf: longNames },
    share: 1 / 4,
  },
  {
    name: 'members with long names',
    bytesOf: unequal,
    options: { format: 'gnu', nameOf: longNames },
    share: 1 / 4,
  },
])
  test(`stretches of a shard of ${name} are read side by side, and give what one walk does`, async (context) => {
    const shard = makeShard(context, bytesOf, options)
    const alone = await readInRounds(shard, 1)
    const divided = await readInRounds(shard, 8)
    assert.equal(alone.members.length, MEMBERS)
    assert.deepEqual(divided.members, alone.members)
    assert.ok(divided.rounds < share * alone.rounds, `${divided.rounds} rounds instead of ${alone.rounds}`)
    assert.ok(
      divided.readBytes < 1.3 * alone.readBytes + shard.length / 20,
      `${divided.readBytes} bytes were read`,
    )
  })

test('headers of archives inside the shard are not headers of the shard', async (context) => {
  const inner = makeShard(context, (i) => sampleBytes(i, 600))
  // Each ends a block before its last member does, so that a walk within them steps over every header of the shard.
  const shard = makeShard(context, (i) => inner.subarray(0, 512 * (3 * (20 + (i % 7)) + 2)))
  const alone = await readInRounds(shard, 1)
  const divided = await readInRounds(shard, 8)
  assert.equal(alone.members.length, MEMBERS)
  assert.deepEqual(divided.members, alone.members)
})

for (const { name, damage } of [
  { name: 'is cut off', damage: (shard: Buffer) => shard.subarray(0, 2_000_000) },
  { name: 'was overwritten', damage: (shard: Buffer) => shard.fill(0x41, 1_400_000, 1_500_000) },
  { name: 'has a hole', damage: (shard: Buffer) => shard.fill(0, 1_400_000, 1_500_000) },
])
  test(`a shard that ${name} is left where one walk leaves it`, async (context) => {
    const shard = damage(makeShard(context, unequal))
    const alone = await readInRounds(shard, 1)
    const divided = await readInRounds(shard, 8)
    assert.ok(alone.damage !== undefined && alone.members.length < MEMBERS)
    assert.deepEqual([divided.members, divided.damage], [alone.members, alone.damage])
  })

test('stretches begin where equal members would, and few members make no stretches', () => {
  const members = Array.from({ length: 8 }, (_, i) => ({ dataAt: 512 + i * 1536, length: 1000 }))
  const sizeBytes = 328 * 1536
  const stretches = planStretches(members, sizeBytes, 4)
  assert.deepEqual(
    stretches.map(({ from }) => from / 1536),
    [8, 88, 168, 248],
  )
  assert.deepEqual(
    stretches.map(({ until }) => until),
    [...stretches.slice(1).map(({ from }) => from), sizeBytes],
  )
  assert.equal(planStretches(members, 60 * 1536, 4).length, 1)
})
