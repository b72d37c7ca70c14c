import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Limit, Shortfall } from '../../policy/quota.js'
import { chooseFreeHint, chooseHint } from './explain-refusal.js'

function missing(limit: Limit): Shortfall {
  return { limit, allowed: 10, taken: 0, needed: 20, missing: 10 }
}

for (const { name, limits, hint } of [
  { name: 'raises the limit that is in the way', limits: ['maxPercent'], hint: /^raise cache\.maxPercent/ },
  {
    name: 'raises no limit of a disk that is too small',
    limits: ['maxPercent', 'minFree'],
    hint: /^free space/,
  },
  {
    name: 'raises no limit where inodes are missing',
    limits: ['maxDatasets', 'inodes'],
    hint: /^free space/,
  },
] satisfies readonly { name: string; limits: readonly Limit[]; hint: RegExp }[]) {
  test(`the hint of a refusal ${name}`, () => {
    assert.match(chooseHint(limits.map(missing), []), hint)
  })
}

test('the hint where too little can be freed is a command that frees it', () => {
  assert.match(chooseFreeHint({ evictableBytes: 4096, evictableCopies: 1 }), /^dsc evict --free 4096 /)
  assert.match(chooseFreeHint({ evictableBytes: 0, evictableCopies: 0 }), /^dsc status /)
})
