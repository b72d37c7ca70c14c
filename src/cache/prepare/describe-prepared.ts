import type { LeaseRequest } from '../../model/lease.js'
import type { RemoteUse } from './lease-remote-copy.js'
import type { Prepared } from './prepare-dataset.js'
import type { PreparedAnswer, PreparedCopyAnswer, PreparedElsewhereAnswer } from './prepared-answer.js'

/** `dsc prepare <dataset> --json`. */
export function describePrepared(prepared: Prepared, lease: LeaseRequest): PreparedAnswer {
  return { dsc: 1, ...describePreparedCopy(prepared, lease) }
}

/** `dsc prepare <dataset> --remote --json` for a copy on another node. */
export function describePreparedElsewhere(used: RemoteUse, lease: LeaseRequest): PreparedElsewhereAnswer {
  const { url, ...prepared } = { ...used, isStagedHere: false }
  return { dsc: 1, ...describePreparedCopy(prepared, lease), path: null, url, origin: 'peer' }
}

/** A prepared dataset, in the form that every answer uses. */
export function describePreparedCopy(prepared: Prepared, lease: LeaseRequest): PreparedCopyAnswer {
  const { copy, leaseId, isStagedHere, downloaded } = prepared
  return {
    dataset: copy.dataset,
    version: copy.version,
    node: copy.node,
    path: copy.path,
    origin: isStagedHere ? copy.origin : 'local',
    files: copy.files,
    contentBytes: copy.contentBytes,
    lease: {
      leaseId,
      task: lease.task,
      holder: lease.holder,
      expiresAt: lease.expiresAtMs === null ? null : new Date(lease.expiresAtMs).toISOString(),
    },
    downloaded,
  }
}
