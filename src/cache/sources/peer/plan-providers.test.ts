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
    { ready: [stager('a')], stagers: [stager('b'), stager('c')] },
    { node: 'c', ...PART },
  )
  assert.deepEqual(
    asked.map(({ provider, isWaitedFor }) => [provider.node, isWaitedFor]),
    [['a', false]],
  )
})

test('of the nodes that stage, one reads a part from the store and the others wait for it', () => {
  const stagers = ['a', 'b', 'c', 'd'].map((node) => stager(node))
  for (let index = 0; index < 50; index++) {
    const part = { key: `${index}.bin`, offset: 0 }
    const firsts = stagers.map(
      ({ node }) => planProviders({ ready: [], stagers }, { node, ...part })[0]?.provider.node,
    )
    const owner = firsts.indexOf(undefined)
    assert.ok(owner >= 0, 'one asks nobody')
    for (const [at, first] of firsts.entries())
      if (at !== owner) assert.equal(first, stagers[owner]!.node, 'the others ask that one first')
  }
})

test('no nodes wait for each other in a circle, whatever each knows of the others', () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  fc.assert(
    fc.property(fc.array(fc.subarray(names), { minLength: 5, maxLength: 5 }), fc.string(), (known, key) => {
      const waitsFor = new Map(
        names.map((node, index) => {
          const stagers = [...new Set([node, ...known[index]!])].map((name) => stager(name))
          const asked = planProviders({ ready: [], stagers }, { node, key, offset: 0 })
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

test('a node that others cannot ask waits for all of them', () => {
  const asked = planProviders({ ready: [], stagers: [stager('a'), stager('b')] }, { node: 'c', ...PART })
  assert.deepEqual(
    asked.map(({ isWaitedFor }) => isWaitedFor),
    [true, true],
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
