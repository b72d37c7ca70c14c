import assert from 'node:assert/strict'
import { planAdmission } from '../policy/plan-admission.js'
import { planEviction } from '../policy/plan-eviction.js'
import type { AdmitRequest, JoinRequest } from '../records/contract/record-requests.js'
import type { RecordStore } from '../records/contract/record-store.js'
import { DISK, exampleDataset, exampleLease, NOW_MS } from './example-copies.js'

/** The node of every staging here. */
export const NODE = 'node-a'

/** A request to stage `dataset` for `task`; the stager's lease lasts a minute. */
export function joinRequest(dataset: string, task: string, changes: Partial<JoinRequest> = {}): JoinRequest {
  return {
    dataset,
    node: NODE,
    lease: exampleLease(task),
    stager: { ...exampleLease(task), expiresAtMs: NOW_MS + 60_000 },
    source: exampleDataset(dataset),
    origin: 's3',
    directoryOf: (copyId) => `/cache/staging/${copyId}`,
    isRefresh: false,
    ...changes,
  }
}

/** The result of a staging's listing. */
export function admitRequest(
  copyId: string,
  stageLeaseId: string,
  version = 'v1',
  chargedBytes = 100,
): AdmitRequest {
  return {
    copyId,
    stageLeaseId,
    version,
    files: 3,
    contentBytes: chargedBytes,
    chargedBytes,
    chargedInodes: 5,
  }
}

/** Decides on an admission under a policy that allows copies half of the disk. */
export function decideFor(copyId: string, chargedBytes = 100): Parameters<RecordStore['admit']>[1] {
  return (copies) =>
    planAdmission({
      policy: { maxPercent: 50 },
      disk: DISK,
      copies,
      request: { datasets: 1, bytes: chargedBytes, inodes: 5 },
      requestCopyId: copyId,
    })
}

/** Takes a new copy of `dataset` through all states to ready. */
export async function stageCopy(
  record: RecordStore,
  dataset: string,
  task: string,
  version = 'v1',
  chargedBytes = 100,
) {
  const joined = await record.joinOrReserve(joinRequest(dataset, task, { isRefresh: true }), NOW_MS)
  assert.equal(joined.outcome, 'stage')
  const { stageLeaseId } = joined
  const { copyId } = joined.copy
  const request = admitRequest(copyId, stageLeaseId, version, chargedBytes)
  const admitted = await record.admit(request, decideFor(copyId, chargedBytes), NOW_MS)
  assert.equal(admitted.outcome, 'admit')
  const directory = `/cache/copies/${dataset}/${version}`
  const isReady = await record.markReady(
    {
      copyId,
      stageLeaseId,
      directory,
      path: `${directory}/files`,
      chargedBytes,
      chargedInodes: 5,
      reason: 'staged',
      detail: {},
    },
    NOW_MS,
  )
  assert.equal(isReady, true)
  return joined
}

/** Evicts every evictable copy from the node. */
export function evictIdle(record: RecordStore) {
  return record.beginEviction(
    { node: NODE, task: null },
    (copies) =>
      planEviction({
        policy: { maxDatasets: 0 },
        disk: DISK,
        copies,
        request: { datasets: 0, bytes: 0, inodes: 0 },
        accept: 'part',
      }),
    NOW_MS,
  )
}
