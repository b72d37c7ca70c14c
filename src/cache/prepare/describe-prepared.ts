import type { LeaseRequest } from '../../model/lease.js'
import type { Prepared } from './prepare-dataset.js'

/** A prepared dataset as `dsc prepare --json` prints it. Scripts rely on the names: fields are only ever added. */
export function describePrepared(prepared: Prepared, lease: LeaseRequest) {
  const { copy } = prepared
  return {
    dataset: copy.dataset,
    version: copy.version,
    node: copy.node,
    path: copy.path,
    origin: prepared.isStagedHere ? copy.origin : ('local' as const),
    files: copy.files,
    bytes: copy.contentBytes,
    lease: {
      id: prepared.leaseId,
      task: lease.task,
      holder: lease.holder.kind,
      expiresAt: lease.expiresAtMs === null ? null : new Date(lease.expiresAtMs).toISOString(),
    },
    ...(prepared.downloaded ? { downloaded: prepared.downloaded } : {}),
  }
}
