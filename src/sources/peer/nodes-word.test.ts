import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObjectFacts } from '../../proof/object-facts.js'
import { NodesWord } from './nodes-word.js'

const FACTS: ObjectFacts = { checksums: [], uploadPartBytes: 8, isEtagMd5: true }

/** Inspects an object twice and notes who is asked; `isAway`: the store does not answer. */
async function inspectTwice(options: { trustsNodes: boolean; source?: string; isAway?: boolean }) {
  const { trustsNodes, source = 's3://bucket/flowers/', isAway = false } = options
  const word = new NodesWord({ trustsNodes, dataset: { name: 'flowers', source } })
  const asked: string[] = []
  const ask = {
    askNodes: async () => {
      asked.push('nodes')
      return FACTS
    },
    askStore: async () => {
      asked.push('store')
      if (isAway) throw new Error('away')
      return FACTS
    },
  }
  for (let round = 0; round < 2; round++) assert.equal(await word.inspect({ checksum: null }, ask), FACTS)
  return asked
}

for (const { name, asked, ...options } of [
  { name: 'the store tells how an object of S3 is verified', trustsNodes: false, asked: ['store', 'store'] },
  { name: 'with trustNodes a node tells it', trustsNodes: true, asked: ['nodes', 'nodes'] },
  {
    name: 'of a source without checksums a node tells it',
    ...{ trustsNodes: false, source: 'file:///data/', asked: ['nodes', 'nodes'] },
  },
  {
    name: 'a store that a node cannot reach is asked once',
    ...{ trustsNodes: false, isAway: true, asked: ['store', 'nodes', 'nodes'] },
  },
]) {
  test(name, async () => assert.deepEqual(await inspectTwice(options), asked))
}

test('bytes with a digest that a node has verified are enough only where it is trusted', () => {
  const dataset = { name: 'flowers', source: 's3://bucket/flowers/' }
  assert.equal(new NodesWord({ trustsNodes: false, dataset }).isEnough({ checksum: null }), false)
  assert.equal(new NodesWord({ trustsNodes: true, dataset }).isEnough({ checksum: null }), true)
})
