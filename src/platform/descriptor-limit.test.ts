import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findDescriptorLimit, parseDescriptorLimit, planRequests } from './descriptor-limit.js'

test('the limit of open files is read as the kernel shows it', () => {
  const line = (soft: string) =>
    `Max processes   1   1   processes\nMax open files            ${soft}   4096   files\n`
  assert.equal(parseDescriptorLimit(line('64')), 64)
  assert.equal(parseDescriptorLimit(line('unlimited')), Number.POSITIVE_INFINITY)
  assert.ok(findDescriptorLimit() > 0)
})

for (const [limit, requests] of [
  [16, 1],
  [64, 2],
  [256, 66],
  [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
] as const)
  test(`${limit} open files leave room for ${requests} requests`, () =>
    assert.equal(planRequests(limit), requests))
