import type { CopyUse } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import type { LeaseRequest, ProcessHolder } from '../model/lease.js'
import type { DiskUsage } from '../model/policy.js'

export const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5)

/** A disk of 1,000 bytes and 1,000 inodes with everything free, so that numbers in tests are easy to follow. */
export const DISK: DiskUsage = { capacityBytes: 1000, freeBytes: 1000, inodesTotal: 1000, inodesFree: 1000 }

export function exampleDataset(name: string, changes: Partial<Dataset> = {}): Dataset {
  return { name, source: `s3://bucket/${name}/`, include: [], exclude: [], ...changes }
}

/** An idle ready copy of 100 bytes, used an hour ago. */
export function exampleCopy(dataset: string, changes: Partial<CopyUse> = {}): CopyUse {
  return {
    copyId: `id-${dataset}`,
    dataset,
    node: 'node-a',
    version: `version-of-${dataset}`,
    state: 'ready',
    origin: 's3',
    source: exampleDataset(dataset),
    directory: `/cache/copies/${dataset}/1`,
    path: `/cache/copies/${dataset}/1/files`,
    chargedBytes: 100,
    chargedInodes: 10,
    writtenBytes: 100,
    files: 8,
    contentBytes: 90,
    lock: null,
    lastTask: 'task-0',
    lastUsedAtMs: NOW_MS - 3_600_000,
    createdAtMs: NOW_MS - 7_200_000,
    readyAtMs: NOW_MS - 7_000_000,
    referenceCount: 0,
    isBeingStaged: false,
    ...changes,
  }
}

/** A task's request for a lease until released. */
export function exampleLease(task: string, changes: Partial<LeaseRequest> = {}): LeaseRequest {
  return { task, holder: { kind: 'ttl' }, expiresAtMs: NOW_MS + 86_400_000, ...changes }
}

/** A process that holds a lease, on another machine. */
export const EXAMPLE_PROCESS: ProcessHolder = {
  kind: 'process',
  machine: 'm',
  host: 'gpu-1',
  pid: 7,
  startTicks: '1',
  bootId: 'b',
  pidNamespace: 'p',
}
