import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { planProviders, type Stager } from './plan-providers.js'

const stager = (node: string, mayHave = false): Stager => ({
  node,
  url: `http://${node}`,
  mayHave,
  isStaging: true,
})
const PART = { key: 'a.bin', offset: 0 }

test('nodes that have everything are asked, and never waited for', () => {
  const asked = planProviders(
    { ready: [stager('a'), stager('b')], stagers: [stager('c')] },
    { node: 'c', ...PART },
  )
  assert.deepEqual(
    asked.map(({ provider, isWaitedFor }) => [provider.node, isWaitedFor]),
    [
      ['a', false],
      ['b', false],
    ],
  )
})

test('of the nodes that stage, one reads a part from the store, and each of the others takes it from one before it', () => {
  const stagers = Array.from({ length: 30 }, (_, index) => stager(`n${index}`))
  for (let index = 0; index < 50; index++) {
    const part = { key: `${index}.bin`, offset: 0 }
    const askedBy = new Map(
      stagers.map(({ node }) => [
        node,
        planProviders({ ready: [], stagers }, { node, ...part }).map(({ provider }) => provider.node),
      ]),
    )
    const owners = [...askedBy].filter(([, asked]) => asked.length === 0)
    assert.equal(owners.length, 1, 'one asks nobody')
    const takers = Map.groupBy(askedBy.values(), ([first]) => first)
    for (const [giver, lists] of takers) {
      if (giver === undefined) continue
      assert.ok(lists.length <= 2, `${giver} is asked first by ${lists.length}`)
      for (const [, ...farther] of lists)
        assert.deepEqual(farther, askedBy.get(giver), 'then those from whom the giver takes it')
    }
    assert.ok(Math.max(...[...askedBy.values()].map(({ length }) => length)) <= 5, 'the way is short')
  }
})

test('a part that somebody waits for is taken from who reads it, by eight of them, and else along the usual way', () => {
  const stagers = Array.from({ length: 20 }, (_, index) => stager(`n${index}`))
  const askedBy = stagers.map(({ node }) => {
    const [usual, wanted] = [false, true].map((isWanted) =>
      planProviders({ ready: [], stagers }, { node, ...PART, isWanted }).map(({ provider }) => provider.node),
    )
    return { usual: usual!, wanted: wanted! }
  })
  const owner = askedBy.find(({ usual }) => usual.length > 0)!.usual.at(-1)!
  assert.equal(askedBy.filter(({ wanted: [first] }) => first === owner).length, 8)
  for (const { usual, wanted } of askedBy) {
    assert.ok(wanted.slice(0, 2).includes(owner) || wanted.length === 0, 'at most one passes it on')
    for (const giver of usual) assert.ok(wanted.includes(giver), 'should who reads it be gone')
  }
})

test('nodes that begin together pass on what one has already, and read nothing from the store', () => {
  const stagers = Array.from({ length: 20 }, (_, index) => stager(`n${index}`))
  const firsts = stagers.map(({ node }) => {
    const [first] = planProviders({ ready: [stager('whole')], stagers }, { node, ...PART })
    return first!
  })
  assert.equal(firsts.filter(({ provider }) => provider.node === 'whole').length, 2)
  assert.equal(firsts.filter(({ isWaitedFor }) => isWaitedFor).length, 18)
})

test('a node that staged with the others keeps its place once it has everything', () => {
  const stagers = Array.from({ length: 20 }, (_, index) => stager(`n${index}`))
  const done = stagers[7]!
  for (const { node } of stagers.filter((each) => each !== done)) {
    const [before, after] = [[], [done]].map((ready) => planProviders({ ready, stagers }, { node, ...PART }))
    const waited = after!.filter(({ isWaitedFor }) => isWaitedFor)
    assert.deepEqual(waited, before)
    assert.equal(after!.filter(({ provider }) => provider.node === 'n7').length, 1, 'and is asked once')
  }
})

test('no nodes wait for each other in a circle, whatever each knows of the others', () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  fc.assert(
    fc.property(fc.array(fc.subarray(names), { minLength: 5, maxLength: 5 }), fc.string(), (known, key) => {
      const waitsFor = new Map(
        names.map((node, index) => {
          const stagers = [...new Set([node, ...known[index]!])].map((name) => stager(name))
          const isWanted = index % 2 === 0
          const asked = planProviders({ ready: [], stagers }, { node, key, offset: 0, isWanted })
          return [node, asked.filter(({ isWaitedFor }) => isWaitedFor).map(({ provider }) => provider.node)]
        }),
      )
      const visit = (node: string, path: readonly string[]): void => {
        assert.ok(!path.includes(node), [...path, node].join(' waits for '))
        for (const next of waitsFor.get(node)!) visit(next, [...path, node])
      }
      for (const node of names) visit(node, [])
    }),
  )
})

test('a node that others cannot ask waits for them, and reads nothing from the store', () => {
  const asked = planProviders({ ready: [], stagers: [stager('a'), stager('b')] }, { node: 'c', ...PART })
  assert.deepEqual(
    asked.map(({ isWaitedFor }) => isWaitedFor),
    [true],
  )
})

test('a node that began earlier is asked for what it may have read already, without waiting', () => {
  const stagers = ['a', 'b', 'c'].map((node) => stager(node, node === 'a'))
  for (let index = 0; index < 20; index++) {
    const asked = planProviders({ ready: [], stagers }, { node: 'b', key: `${index}.bin`, offset: 0 })
    assert.ok(asked.some(({ provider }) => provider.node === 'a'))
    for (const { provider, isWaitedFor } of asked) assert.ok(isWaitedFor || provider.node === 'a')
  }
})

test('a node that has given up is asked for what it has, and never waited for', () => {
  const left = { ...stager('a', true), isStaging: false }
  for (let index = 0; index < 20; index++) {
    const stagers = [left, stager('b')]
    const asked = planProviders({ ready: [], stagers }, { node: 'b', key: `${index}.bin`, offset: 0 })
    assert.deepEqual(asked, [{ provider: left, isWaitedFor: false }])
  }
})
