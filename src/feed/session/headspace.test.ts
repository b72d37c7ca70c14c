import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LeasedBatch } from '../stream/leased-batch.js'
import { HeadspaceProbe, type WorkerProbe } from './headspace.js'

const NAME = { rank: 0, reader: '', worker: 0, pid: 1 }

function batch(step: number): LeasedBatch {
  return { epoch: 0, step, slots: [], offsets: [step], lost: [] }
}

/** Takes batches at a pace: `asItIsMs` for read ones, `freeMs` for replayed ones. Returns the batches. */
class Reader {
  readonly got: LeasedBatch[] = []
  readonly #probe: WorkerProbe
  nowMs = 0

  constructor(probe: WorkerProbe) {
    this.#probe = probe
  }

  take(count: number, { asItIsMs, freeMs }: { asItIsMs: number; freeMs: number }): void {
    for (let step = this.got.length, end = step + count; step < end; step++) {
      const replayed = this.#probe.replay(0, step)
      const next = replayed ?? batch(step)
      this.nowMs += replayed ? freeMs : asItIsMs
      this.#probe.note(next, this.nowMs)
      this.got.push(next)
    }
  }
}

test('after warm-up and measurement two batches come again and again, and both paces are told', async () => {
  const probe = new HeadspaceProbe({ batches: 10, warmup: 4 })
  const worker = probe.ofWorker(NAME)
  assert.deepEqual(worker.begin(worker, 3), [])
  const reader = new Reader(worker)
  reader.take(4, { asItIsMs: 500, freeMs: 1 }) // not measured
  reader.take(40, { asItIsMs: 12, freeMs: 8 })
  await probe.finished
  const offsets = reader.got.map(({ offsets: [first] }) => first)
  assert.deepEqual(
    offsets.slice(0, 16),
    Array.from({ length: 16 }, (_, index) => index),
  )
  assert.deepEqual(new Set(offsets.slice(16)), new Set([14, 15]))
  assert.deepEqual(
    reader.got.map(({ step }) => step),
    Array.from({ length: 44 }, (_, index) => index),
  )
  assert.deepEqual(probe.list(), [
    {
      rank: 0,
      worker: 0,
      asItIs: { batches: 10, secondsPerBatch: 0.012, noise: 0 },
      free: { batches: 10, secondsPerBatch: 0.008, noise: 0 },
    },
  ])
})

test('what is replayed stays in memory until the pass ends; what lies between two passes is not measured', () => {
  const probe = new HeadspaceProbe({ batches: 4, warmup: 0 })
  const worker = probe.ofWorker(NAME)
  worker.begin(worker, 1)
  const reader = new Reader(worker)
  reader.take(20, { asItIsMs: 10, freeMs: 5 })
  const kept = reader.got.filter((each) => worker.keeps(each))
  assert.equal(kept.length, 20 - 5) // the first five were read, and leave when the client releases them
  assert.equal(worker.begin(worker, 1).length, 2)
  assert.equal(probe.list()[0]?.free.secondsPerBatch, 0.005)

  const other = new HeadspaceProbe({ batches: 3, warmup: 0 }).ofWorker(NAME)
  const gaps = new Reader(other)
  for (let pass = 0; pass < 10; pass++) {
    other.begin(other, 1)
    gaps.take(4, { asItIsMs: 10, freeMs: 5 })
    gaps.nowMs += 10_000 // an evaluation
  }
  assert.equal(other.describe()?.asItIs.secondsPerBatch, 0.01)
  assert.equal(other.describe()?.free.secondsPerBatch, 0.005)
})

test('a connection that closes late takes nothing from the one that came after it', () => {
  const worker = new HeadspaceProbe({ batches: 1, warmup: 0 }).ofWorker(NAME)
  const [before, after] = [{}, {}]
  worker.begin(before, 1)
  worker.begin(after, 1)
  new Reader(worker).take(10, { asItIsMs: 2, freeMs: 1 })
  assert.deepEqual(worker.end(before), [])
  assert.equal(worker.end(after).length, 2)
})

test('halves that differ are told as noise; workers that were not measured are not told of', async () => {
  const probe = new HeadspaceProbe({ batches: 4, warmup: 0 })
  const worker = probe.ofWorker(NAME)
  worker.begin(worker, 0)
  const reader = new Reader(worker)
  reader.take(1, { asItIsMs: 1, freeMs: 1 })
  reader.take(2, { asItIsMs: 10, freeMs: 1 })
  reader.take(2, { asItIsMs: 30, freeMs: 1 })
  assert.deepEqual(probe.list(), [])
  assert.equal(probe.leastDelivered, 5)
  reader.take(10, { asItIsMs: 1, freeMs: 1 })
  assert.equal(probe.list()[0]?.asItIs.noise, 1) // 10 and 30 around 20
})
