import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countPrepared } from './prepare-striped.js'

const nodes = ['a', 'b']
const stripe = (index: number) => ({ files: 2, contentBytes: 10, stripe: { index, nodes } })
const whole = { files: 4, contentBytes: 20 }

for (const { name, copies } of [
  { name: 'stripes', copies: [stripe(0), stripe(1)] },
  { name: 'a stripe beside a whole copy', copies: [stripe(0), whole] },
  { name: 'whole copies', copies: [whole, whole] },
]) {
  test(`countPrepared counts every file of ${name} once`, () => {
    assert.deepEqual(countPrepared(copies), { files: 4, contentBytes: 20 })
  })
}
