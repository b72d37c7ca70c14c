import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sumUpCopies } from '../../policy/copy-sums.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { fitsLiveScreen } from './fits-live-screen.js'

test('200,000 copies fit on the live screen, a million do not, those of one of its nodes do', async () => {
  const [sum] = sumUpCopies([exampleCopy('flowers')])
  const ask = (copies: readonly number[], node?: string) => {
    const sums = copies.map((count, index) => ({ ...sum!, node: `gpu-${index}`, copies: count }))
    const matching = (wanted: { readonly node?: string | undefined }) =>
      sums.filter((one) => wanted.node === undefined || one.node === wanted.node)
    return fitsLiveScreen({ sumCopies: async (filter) => matching(filter) }, { node }, 0)
  }
  assert.equal(await ask([]), true)
  assert.equal(await ask([100_000, 100_000]), true)
  assert.equal(await ask([100_000, 100_001]), false)
  assert.equal(await ask([100_000, 100_001], 'gpu-0'), true)
})
