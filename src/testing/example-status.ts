import { composeStatus, type StatusSnapshot } from '../cache/status/compose-status.js'
import { findLayouts } from '../cache/status/find-layouts.js'
import type { CopyUse } from '../model/copy.js'
import { formatTransferTask, type PlacedLease } from '../model/lease.js'
import type { CachePolicy } from '../model/policy.js'
import type { RecordEvent } from '../model/record-event.js'
import { sumUpCopies } from '../policy/copy-sums.js'
import { EXAMPLE_PROCESS, exampleCopy, NOW_MS } from './example-copies.js'
import { exampleReady } from './example-record.js'

const GIB = 1024 ** 3

/** Shares for `exampleStatus`: one within its guarantee, one that borrows. */
export const EXAMPLE_SHARES = [
  { party: 'group:vision', percent: 50 },
  { party: 'account:nlp', percent: 10 },
]

/** A deterministic snapshot: copies over two nodes, leases, locks, two downloads, four events. */
export function exampleStatus(
  copyCount: number,
  changes: { nowMs?: number; writtenBytes?: number; shares?: CachePolicy['shares'] } = {},
): StatusSnapshot {
  const nowMs = changes.nowMs ?? NOW_MS
  const nodes = ['gpu-01', 'gpu-02']
  const leases: PlacedLease[] = []
  const copies = Array.from({ length: copyCount }, (_, at): CopyUse => {
    const node = nodes[at % 2]!
    const referenceCount = at % 3 === 0 ? 1 + (at % 4) : 0
    for (let holder = 0; holder < referenceCount; holder += 1) {
      leases.push({
        leaseId: `lease-${at}-${holder}`,
        copyId: `copy-${at}`,
        dataset: exampleReady(at, node, NOW_MS).dataset,
        node,
        purpose: 'use',
        task: `job-${4700 + at + holder}`,
        holder: holder === 0 ? { kind: 'slurm', jobId: String(4700 + at) } : { kind: 'ttl' },
        createdAtMs: NOW_MS - 3_600_000,
        renewedAtMs: NOW_MS - 60_000,
        expiresAtMs: holder === 0 ? null : NOW_MS + 7_200_000,
      })
    }
    return {
      ...exampleReady(at, node, NOW_MS),
      lock: at % 10 === 3 ? { by: 'ops', reason: 'benchmark of the week', atMs: NOW_MS - 86_400_000 } : null,
      referenceCount,
      isBeingStaged: false,
      ...(changes.shares && at % 3 < 2 ? { parties: [changes.shares[at % 3]!.party] } : {}),
    }
  })
  copies.push(exampleStaging('webdata', 'gpu-01', changes.writtenBytes ?? 8 * GIB))
  leases.push(stageLease('webdata'))
  const serving: PlacedLease = {
    ...stageLease('webdata'),
    leaseId: 'serving',
    copyId: 'copy-elsewhere',
    node: 'gpu-02',
    purpose: 'transfer',
    task: formatTransferTask('gpu-01'),
  }
  const event = (sequence: number, kind: 'staged' | 'evicted' | 'refused' | 'locked', reason: string) => ({
    sequence,
    atMs: NOW_MS - (10 - sequence) * 60_000,
    kind,
    node: 'gpu-01',
    dataset: kind === 'refused' ? 'laion-huge' : 'dataset-0001',
    copyId: kind === 'refused' ? null : 'copy-0',
    task: kind === 'locked' ? null : 'job-4711',
    reason,
    detail: {},
  })
  return composeStatus({
    takenAtMs: nowMs,
    recordLocation: 'sqlite:///var/lib/dsc/record.db',
    nodes: nodes.map((node) => ({
      node,
      cacheRoot: '/nvme/dsc',
      policy: {
        maxDatasets: 40,
        maxPercent: 80,
        minFreeBytes: 50 * GIB,
        ...(changes.shares && node === 'gpu-01' ? { shares: changes.shares } : {}),
      },
      disk: { capacityBytes: 1000 * GIB, freeBytes: 180 * GIB, inodesTotal: 1000, inodesFree: 800 },
      seenAtMs: NOW_MS - 2_000,
    })),
    copies,
    sums: sumUpCopies(copies),
    layouts: findLayouts(copies),
    leases,
    transferLeases: [serving],
    events: [
      event(4, 'refused', 'needs 2.1 TiB, has 180 GiB free and 96 GiB evictable; 12 leases hold the rest'),
      event(3, 'locked', 'ops: benchmark of the week'),
      event(2, 'evicted', 'least recently used, to make room for 12 GiB'),
      event(1, 'staged', 'fetched 3 files, 8.58 MiB'),
    ],
  })
}

function exampleStaging(dataset: string, node: string, writtenBytes: number): CopyUse {
  return exampleCopy(dataset, {
    copyId: `copy-${dataset}`,
    node,
    state: 'staging',
    version: 'f'.repeat(64),
    chargedBytes: 20 * GIB,
    contentBytes: 20 * GIB,
    writtenBytes,
    files: 120_000,
    referenceCount: 1,
    isBeingStaged: true,
    lastTask: 'job-4800',
    lastUsedAtMs: NOW_MS - 90_000,
    createdAtMs: NOW_MS - 90_000,
    readyAtMs: null,
  })
}

function stageLease(dataset: string): PlacedLease {
  return {
    leaseId: `stage-${dataset}`,
    copyId: `copy-${dataset}`,
    dataset,
    node: 'gpu-01',
    purpose: 'stage',
    task: 'job-4800',
    holder: { ...EXAMPLE_PROCESS, host: 'gpu-01', pid: 4711 },
    createdAtMs: NOW_MS - 90_000,
    renewedAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 120_000,
  }
}

/** Stagings and evictions of the last 24 hours, for the curves: a quiet night and a busy morning. */
export function exampleDay(): readonly RecordEvent[] {
  const hours = [
    23.6, 22.9, 22.1, 20.4, 19.8, 16.2, 10.5, 9.9, 9.2, 8.8, 8.1, 7.7, 7.2, 6.4, 5.1, 3.9, 2.2, 1.4,
  ]
  return hours.flatMap((hoursAgo, at) => {
    const bytes = (1 + ((at * 7) % 5)) * (at > 5 && at < 13 ? 24 : 6) * GIB
    const place = { node: 'gpu-01', dataset: `gone-${at}`, copyId: `gone-${at}`, task: null, reason: '' }
    const event = (
      kind: RecordEvent['kind'],
      atHoursAgo: number,
      detail: RecordEvent['detail'],
    ): RecordEvent => {
      return { ...place, sequence: at, kind, atMs: NOW_MS - atHoursAgo * 3_600_000, detail }
    }
    return [
      event('staging-started', hoursAgo, {}),
      event('staged', hoursAgo - 0.25, { fetchedBytes: bytes }),
      event('evicted', Math.max(0.1, hoursAgo - 7), { chargedBytes: bytes }),
    ]
  })
}
