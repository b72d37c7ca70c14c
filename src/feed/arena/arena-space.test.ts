import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandomStream } from '../plan/random.js'
import type { Extent } from './arena-extents.js'
import { ArenaSpace, type EvictionMode } from './arena-space.js'

const OPERATIONS = Number(process.env.DSC_ARENA_OPERATIONS ?? 100_000)

/** Returns the live extents of both ends by address; throws when two overlap or one lies outside. */
function checkLayout(arena: ArenaSpace, live: ReadonlySet<Extent>): void {
  const { extents } = arena
  const spans = [...live].map((extent) => [arena.offsetOf(extent), extents.lengthOf(extent)] as const)
  spans.sort((a, b) => a[0] - b[0])
  let end = 0
  for (const [start, length] of spans) {
    assert.ok(start >= end, `extents overlap at ${start}`)
    end = start + length
  }
  assert.ok(end <= arena.totalBytes)
}

/** Returns the waiting samples of the prefetch space, in address order. */
function listReady({ bottom, extents }: ArenaSpace): number[] {
  return [...bottom]
    .filter((extent) => extents.stateOf(extent) === 'ready')
    .map((extent) => extents.sampleOf(extent))
}

/**
 * Runs random reserve, arrive, lease, finish and keep operations, with log-normal sizes, on an arena modeled by a real
 * buffer: each live extent must still hold the pattern written when it arrived.
 */
function runOperations(eviction: EvictionMode, seed: number, operations: number) {
  const random = createRandomStream(seed, 0)
  const totalBytes = 40_000
  const memory = new Uint8Array(totalBytes)
  let movedBytes = 0
  const leased = new Set<Extent>()
  const where = new Map<Extent, number>()
  const arena: ArenaSpace = new ArenaSpace({
    totalBytes,
    eviction,
    moveChunkBytes: 700, // so that passes take many steps, with other work in between
    move: (from, to, length) => {
      assert.ok(to < from)
      movedBytes += length
      memory.copyWithin(to, from, from + length)
    },
    observer: {
      evicted: (run) => {
        for (const extent of run) assert.equal(arena.extents.stateOf(extent), 'done')
      },
      moved: (run) => {
        for (const extent of run) assert.match(arena.extents.stateOf(extent), /^(ready|placed)$/)
      },
    },
  })
  arena.setLimits({ bottomBytes: 28_000, topBytes: 12_000 })
  const { extents: all } = arena
  const live = new Set<Extent>()
  const inState = (...states: readonly string[]) =>
    [...live].filter((extent) => states.includes(all.stateOf(extent)))
  const pick = (among: readonly Extent[]) => among[random.nextBelow(among.length)]!
  const normal = () =>
    Array.from({ length: 6 }, () => random.nextBelow(1000) / 1000 - 0.5).reduce((a, b) => a + b)
  let refused = 0
  for (let i = 0; i < operations; i++) {
    const action = random.nextBelow(100)
    if (action < 40) {
      const length = Math.max(1, Math.min(4000, Math.round(300 * Math.exp(0.8 * normal()))))
      const before = listReady(arena)
      const run = Array.from({ length: 1 + random.nextBelow(5) }, () => ({ length, sample: i }))
      const single = () =>
        action < 34
          ? arena.reserveBottom(run[0]!, action < 12 ? 'missed' : 'ahead')
          : arena.reserveTop(run[0]!)
      const extents = action < 8 ? arena.reserveRun(run) : [single()].flatMap((extent) => extent ?? [])
      assert.deepEqual(listReady(arena), before, `operation ${i}: compaction changed the order`)
      for (const [at, extent] of (extents ?? []).entries()) {
        live.add(extent)
        assert.equal(all.startOf(extent), all.startOf(extents![0]!) + at * length, 'a run lies side by side')
      }
      if (!extents?.length) refused++
    } else if (action < 45) {
      for (const extent of inState('placed')) all.mark(extent, 'reserved')
    } else if (action < 65) {
      const reserved = inState('reserved')
      if (reserved.length === 0) continue
      const extent = pick(reserved)
      const at = arena.offsetOf(extent)
      memory.fill(all.sampleOf(extent) & 0xff, at, at + all.lengthOf(extent))
      all.mark(extent, all.isAtTop(extent) ? 'kept' : 'ready')
    } else if (action < 80) {
      const ready = inState('ready', 'kept')
      if (ready.length === 0) continue
      const extent = pick(ready)
      all.mark(extent, 'leased')
      leased.add(extent)
      where.set(extent, arena.offsetOf(extent))
    } else {
      const done = inState('leased')
      if (done.length === 0) continue
      const extent = pick(done)
      assert.equal(arena.offsetOf(extent), where.get(extent), 'a leased extent was moved')
      const sample = all.sampleOf(extent)
      for (let at = arena.offsetOf(extent); at < arena.offsetOf(extent) + all.lengthOf(extent); at++)
        assert.equal(memory[at], sample & 0xff, `operation ${i}: the bytes of ${sample} changed`)
      arena.finish(extent)
      live.delete(extent)
      leased.delete(extent)
    }
    if (i % 64 === 0) checkLayout(arena, live)
  }
  const order = [...arena.bottom].map((extent) => all.startOf(extent))
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
  )
  return { movedBytes, refused, operations }
}

for (const eviction of ['lazy', 'patent'] as const) {
  for (const seed of [1, 2, 3]) {
    test(`an arena with ${eviction} eviction keeps every live byte in place or moves it whole (seed ${seed})`, () => {
      const { refused } = runOperations(eviction, seed, Math.floor(OPERATIONS / 6))
      assert.ok(refused < OPERATIONS / 6, 'the arena must take something')
    })
  }
}

test('a run of used extents is evicted as one hole, which the next samples fill from its front', () => {
  const evictions: number[] = []
  const arena = new ArenaSpace({
    totalBytes: 100,
    eviction: 'lazy',
    threshold: 1,
    move: () => assert.fail('nothing needs to move'),
    observer: { evicted: (run) => void evictions.push(run.length) },
  })
  arena.setLimits({ bottomBytes: 100, topBytes: 0 })
  const extents = Array.from(
    { length: 10 },
    (_, i) => arena.reserveBottom({ length: 10, sample: i }, 'ahead')!,
  )
  for (const extent of extents) arena.extents.mark(extent, 'ready')
  for (const extent of extents.slice(2, 6)) arena.finish(extent)
  const placed = [11, 12, 13].map((sample) => arena.reserveBottom({ length: 10, sample }, 'ahead')!)
  assert.deepEqual(evictions, [4])
  assert.deepEqual(
    placed.map((extent) => arena.extents.startOf(extent)),
    [20, 30, 40],
  )
})

test('a run takes the first hole that holds all of it, and leaves smaller ones to single samples', () => {
  const arena = new ArenaSpace({ totalBytes: 100, eviction: 'lazy', threshold: 1, move: () => {} })
  arena.setLimits({ bottomBytes: 100, topBytes: 0 })
  const extents = Array.from(
    { length: 10 },
    (_, i) => arena.reserveBottom({ length: 10, sample: i }, 'ahead')!,
  )
  for (const extent of extents) arena.extents.mark(extent, 'ready')
  for (const at of [1, 4, 5, 6]) arena.finish(extents[at]!)
  const itemsFrom = (sample: number) => [0, 1, 2].map((i) => ({ length: 10, sample: sample + i }))
  assert.deepEqual(
    arena.reserveRun(itemsFrom(20))!.map((extent) => arena.extents.startOf(extent)),
    [40, 50, 60],
  )
  assert.equal(arena.reserveRun(itemsFrom(30)), undefined)
  const single = arena.reserveBottom({ length: 10, sample: 40 }, 'ahead')!
  assert.equal(arena.extents.startOf(single), 10)
})

test('nothing is placed over the border between prefetched and kept samples', () => {
  const arena = new ArenaSpace({ totalBytes: 100, eviction: 'lazy', move: () => {} })
  arena.setLimits({ bottomBytes: 60, topBytes: 60 })
  const kept = arena.reserveTop({ length: 70, sample: 0 })!
  assert.equal(arena.offsetOf(kept), 30)
  assert.ok(arena.reserveBottom({ length: 30, sample: 1 }, 'missed'))
  assert.equal(arena.reserveBottom({ length: 1, sample: 2 }, 'missed'), undefined)
})
