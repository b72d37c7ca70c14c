import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KEPT_MS, planDrops } from './plan-drops.js'

const NOW_MS = 1_800_000_000_000
const kept = (name: string, ageMs: number) => ({
  name,
  evictedAtMs: NOW_MS - ageMs,
  diskBytes: 100,
  inodes: 10,
})
const [older, newer] = [kept('older', 2000), kept('newer', 1000)]
const NOTHING = { datasets: 0, bytes: 0, outstandingBytes: 0, outstandingInodes: 0 }

for (const { name, changes, dropped } of [
  { name: 'keeps all where the disk has room', changes: {}, dropped: [] },
  {
    name: 'drops what is older than a day',
    changes: { kept: [kept('old', KEPT_MS + 1), kept('just', KEPT_MS)] },
    dropped: ['old: evicted more than a day ago'],
  },
  {
    name: 'drops the oldest first for what is admitted, and no more than that needs',
    changes: { free: 50, load: { ...NOTHING, outstandingBytes: 120 } },
    dropped: ['older: its room is needed'],
  },
  {
    name: 'drops all where all is needed',
    changes: { free: 50, load: { ...NOTHING, outstandingBytes: 1000 } },
    dropped: ['older: its room is needed', 'newer: its room is needed'],
  },
  {
    name: 'keeps minFree free',
    changes: { free: 50, policy: { minFreeBytes: 51 } },
    dropped: ['older: its room is needed'],
  },
  {
    name: 'drops for inodes',
    changes: { inodesFree: 3, load: { ...NOTHING, outstandingInodes: 4 } },
    dropped: ['older: its room is needed'],
  },
  {
    name: 'leaves the margin to other programs',
    changes: { free: 40, marginBytes: 50 },
    dropped: ['older: its room is needed'],
  },
  {
    name: 'stays within maxPercent of the disk, together with the copies',
    changes: { policy: { maxPercent: 80 }, load: { ...NOTHING, bytes: 700 } },
    dropped: ['older: its room is needed'],
  },
  {
    name: 'keeps what copies and trash may take together',
    changes: { policy: { maxPercent: 80 }, load: { ...NOTHING, bytes: 600 } },
    dropped: [],
  },
  {
    name: 'drops what a clock that ran ahead kept',
    changes: { kept: [kept('just', -KEPT_MS), kept('far', -KEPT_MS - 1)] },
    dropped: ['far: evicted more than a day ago'],
  },
  {
    name: 'does not mind how many datasets there are',
    changes: { policy: { maxDatasets: 0 }, load: { ...NOTHING, datasets: 9 } },
    dropped: [],
  },
]) {
  test(`planDrops ${name}`, () => {
    const { free = 500, inodesFree = 50, ...rest } = changes as { free?: number; inodesFree?: number }
    const disk = { capacityBytes: 1000, freeBytes: free, inodesTotal: 100, inodesFree }
    const input = {
      kept: [older, newer],
      disk,
      load: NOTHING,
      policy: {},
      nowMs: NOW_MS,
      marginBytes: 0,
      ...rest,
    }
    assert.deepEqual(
      planDrops(input).map((drop) => `${drop.name}: ${drop.reason}`),
      dropped,
    )
  })
}
