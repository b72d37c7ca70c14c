import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planDirect } from './plan-direct.js'

const GIB = 2 ** 30

for (const { name, bytes, memoryBytes = 16 * GIB, isNetwork = false, isDirect } of [
  { name: 'a small part of the memory is written through the page cache', bytes: GIB, isDirect: false },
  { name: 'more than an eighth of the memory goes past it', bytes: 2 * GIB + 1, isDirect: true },
  { name: 'a container with little memory counts', bytes: GIB, memoryBytes: GIB, isDirect: true },
  {
    name: 'file systems of networks cache what they send',
    bytes: 99 * GIB,
    isNetwork: true,
    isDirect: false,
  },
])
  test(`planDirect: ${name}`, () => {
    assert.equal(planDirect({ bytes, memoryBytes, isNetwork }), isDirect)
  })
