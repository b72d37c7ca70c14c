import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { OrderOfNeed } from '../arrivals/order-of-need.js'
import { ByteBudget } from './byte-budget.js'
import type { ObjectDownload } from './object-download.js'
import { runSchedule } from './run-schedule.js'
import { Schedule, type Work } from './schedule.js'
import type { TransferEngine } from './transfer/transfer-task.js'

const SIZE_BYTES = 20 * 2 ** 20
const COUNT = 20

const entryOf = (id: number) =>
  ({ id, key: `${id}`, sizeBytes: SIZE_BYTES, partBytes: null, etag: null, facts: null }) as ManifestEntry

test('objects that a reader waits for are fetched in the order of its waits, a few at a time', async () => {
  const need = new OrderOfNeed<string>(COUNT, [])
  const ids = Array.from({ length: COUNT }, (_, index) => index + 1)
  const wanted = ids.toReversed()
  for (const id of wanted) need.want('the feed', id)
  const schedule = new Schedule({
    missing: ids.map(entryOf),
    entryOf,
    need,
    isAwaited: () => false,
    mayTakeParts: () => true,
    nowMs: () => 0,
  })
  const begun: number[] = []
  const ends: (() => void)[] = []
  const run = async (work: Work) => {
    assert.ok(work.kind === 'whole')
    begun.push(work.entry.id)
    await new Promise<void>((resolve) => ends.push(resolve))
  }
  const stop = new AbortController()
  const done = runSchedule({
    engine: { counts: { receivedBytes: 0, throttled: 0 } } as TransferEngine,
    schedule,
    download: { run } as unknown as ObjectDownload,
    budget: new ByteBudget(),
    isSpent: () => true,
    concurrency: 64,
    signal: stop.signal,
    stop,
  })
  const atOnce = [...begun]
  for (let end = ends.shift(); end; end = ends.shift()) {
    end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await done
  assert.deepEqual(atOnce, wanted.slice(0, 4))
  assert.deepEqual(begun, wanted)
})

test('what is fetched makes room for more while it is proven, and the run ends with the last proof', async (t) => {
  const ids = [1, 2, 3]
  const schedule = new Schedule({
    missing: ids.map(entryOf),
    entryOf,
    need: new OrderOfNeed<string>(COUNT, []),
    isAwaited: () => false,
    mayTakeParts: () => true,
    nowMs: () => 0,
  })
  const begun: { readonly fetched: () => void; readonly proven: () => void }[] = []
  const run = (_work: Work, _urgency: string, fetched: () => void) =>
    new Promise<void>((proven) => begun.push({ fetched, proven }))
  const stop = new AbortController()
  t.after(() => {
    stop.abort()
    for (const { proven } of begun) proven()
  })
  let isDone = false
  const done = runSchedule({
    engine: { counts: { receivedBytes: 0, throttled: 0 } } as TransferEngine,
    schedule,
    download: { run } as unknown as ObjectDownload,
    budget: new ByteBudget(),
    isSpent: () => false,
    concurrency: 1,
    signal: stop.signal,
    stop,
  }).then(() => {
    isDone = true
  })
  for (const [before] of ids.entries()) {
    assert.equal(begun.length, before + 1)
    begun[before]!.fetched()
  }
  for (const { proven } of begun) {
    assert.equal(isDone, false)
    proven()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await done
})
