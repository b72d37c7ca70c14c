import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_REQUEST_BYTES, type RequestTiming } from '../plan/request-cost.js'
import { RequestSizing } from './request-sizing.js'

const base = { k: 'auto', requestBytes: undefined, isConformance: false } as const
/** t0 = 10 ms and 1 MB per ms: 16 MiB and more are wanted. */
const far: RequestTiming = {
  askedAtMs: 0,
  silentSinceMs: 0,
  firstAtMs: 10.25,
  lastAtMs: 14.25,
  firstBytes: 250_000,
  bytes: 4_250_000,
}
/** t0 = 0.1 ms: less than 4 MiB would do. */
const near = { ...far, firstAtMs: 0.35, lastAtMs: 4.35 }

test('requests take 4 MiB until their cost is known, then what it asks for, once an epoch at most', () => {
  const sizing = new RequestSizing(base)
  for (let i = 0; i < 3; i++) sizing.add(far)
  assert.equal(sizing.fit(0), false)
  assert.deepEqual([sizing.from, sizing.bytes], ['size', DEFAULT_REQUEST_BYTES])
  sizing.add(far)
  assert.equal(sizing.fit(0), true)
  assert.deepEqual([sizing.from, sizing.bytes], ['measured', 16 * 2 ** 20])
  for (let i = 0; i < 32; i++) sizing.add(near)
  assert.equal(sizing.fit(0), false)
  assert.equal(sizing.fit(1), true)
  assert.equal(sizing.bytes, DEFAULT_REQUEST_BYTES)
  assert.equal(sizing.fit(2), false, 'the same again is no change')
})

for (const { name, options, from, bytes } of [
  { name: 'k is given', options: { k: 32 }, from: 'given', bytes: DEFAULT_REQUEST_BYTES },
  { name: 'their bytes are given', options: { requestBytes: 3_000_000 }, from: 'request', bytes: 3_000_000 },
  {
    name: 'the seeds run to the letter',
    options: { isConformance: true },
    from: 'size',
    bytes: DEFAULT_REQUEST_BYTES,
  },
] as const) {
  test(`requests do not change in size when ${name}`, () => {
    const sizing = new RequestSizing({ ...base, ...options })
    for (let i = 0; i < 32; i++) sizing.add(far)
    assert.equal(sizing.fit(0), false)
    assert.deepEqual([sizing.from, sizing.bytes], [from, bytes])
  })
}
