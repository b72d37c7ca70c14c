import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestCostMeter } from '../engine/request-cost-meter.js'
import { planRequestBytes, type RequestTiming } from './request-cost.js'

const MIB = 2 ** 20
const CHUNK = 256 * 1024

/** Makes successive requests of `bytes` to a node with t0 = `fixedMs` that sends `bytesPerMs`. */
function* askAlone(fixedMs: number, bytesPerMs: number, bytes: number): Generator<RequestTiming> {
  for (let askedAtMs = 1000; ; askedAtMs += fixedMs + bytes / bytesPerMs + 5) {
    const at = (came: number) => askedAtMs + fixedMs + came / bytesPerMs
    const firstBytes = Math.min(CHUNK, bytes)
    yield {
      askedAtMs,
      silentSinceMs: askedAtMs - 5,
      firstAtMs: at(firstBytes),
      lastAtMs: at(bytes),
      firstBytes,
      bytes,
    }
  }
}

function measure(requests: Iterable<RequestTiming>, count: number) {
  const meter = new RequestCostMeter()
  for (const timing of requests) {
    if (count-- === 0) break
    meter.add(timing)
  }
  return meter
}

test('four requests tell the fixed cost and the rate of a node', () => {
  assert.equal(measure(askAlone(3, 5000, 4 * MIB), 3).cost(), undefined)
  const { fixedMs, bytesPerMs } = measure(askAlone(3, 5000, 4 * MIB), 4).cost()!
  assert.ok(Math.abs(fixedMs - 3) < 1e-6, `${fixedMs}`)
  assert.ok(Math.abs(bytesPerMs - 5000) < 1e-3, `${bytesPerMs}`)
})

test('requests that stood behind others do not count as slow to answer', () => {
  const meter = measure(askAlone(3, 5000, 4 * MIB), 4)
  for (let i = 0; i < 32; i++)
    meter.add({
      askedAtMs: 0,
      silentSinceMs: 800,
      firstAtMs: 801,
      lastAtMs: 1600,
      firstBytes: CHUNK,
      bytes: CHUNK + 799 * 5000,
    })
  assert.ok(Math.abs(meter.cost()!.fixedMs - 3) < 1e-6)
})

test('one request that hung for a second changes nothing, and old ones are forgotten', () => {
  const meter = measure(askAlone(3, 5000, 4 * MIB), 8)
  meter.add({
    askedAtMs: 0,
    silentSinceMs: 0,
    firstAtMs: 1000,
    lastAtMs: 5000,
    firstBytes: CHUNK,
    bytes: 4 * MIB,
  })
  assert.ok(Math.abs(meter.cost()!.fixedMs - 3) < 1e-6)
  let count = 0
  for (const timing of askAlone(20, 100, 4 * MIB)) {
    if (count++ === 32) break
    meter.add(timing)
  }
  assert.ok(Math.abs(meter.cost()!.fixedMs - 20) < 1e-6)
})

test('requests whose bytes come all at once say nothing about the rate', () => {
  assert.equal(measure(askAlone(1, 5000, 4096), 32).cost(), undefined)
})

for (const { name, fixedMs, bytesPerMs, bytes } of [
  { name: 'are 9 t0 B: 10 GbE with 0.5 ms', fixedMs: 0.5, bytesPerMs: 1.25e6, bytes: 5_625_000 },
  { name: 'are at least 4 MiB', fixedMs: 0, bytesPerMs: 1e6, bytes: 4 * MIB },
  { name: 'are at most 16 MiB', fixedMs: 50, bytesPerMs: 1e6, bytes: 16 * MIB },
]) {
  test(`bytes per request ${name}`, () => {
    assert.equal(planRequestBytes({ fixedMs, bytesPerMs }), bytes)
  })
}
