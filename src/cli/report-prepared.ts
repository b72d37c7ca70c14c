import { formatCount } from '../model/format-count.js'
import type { LeaseRequest } from '../model/lease.js'
import type { Prepared } from '../stage/prepare-dataset.js'
import type { Reporter } from './reporter.js'

/** Reports a prepared dataset: its path on stdout, or with `--json` the fields that scripts rely on. */
export function reportPrepared(report: Reporter, prepared: Prepared, lease: LeaseRequest): void {
  const { copy, downloaded } = prepared
  if (downloaded) {
    const verified = Object.entries(downloaded.verifiedBy)
      .filter(([, files]) => files > 0)
      .map(([method, files]) => `${files.toLocaleString('en-US')} by ${method}`)
      .join(', ')
    report.note(
      `${copy.dataset}: ${formatCount(copy.files, 'file')} staged; verified ${verified || 'nothing new'}`,
    )
  }
  if (lease.holder.kind === 'process') {
    report.note(`${copy.dataset}: leased to process ${lease.holder.pid} for as long as it lives`)
  }
  report.result(preparedFields(prepared, lease), () => copy.path)
}

function preparedFields(prepared: Prepared, lease: LeaseRequest) {
  const { copy } = prepared
  return {
    dataset: copy.dataset,
    version: copy.version,
    node: copy.node,
    path: copy.path,
    origin: prepared.isStagedHere ? copy.origin : 'local',
    files: copy.files,
    bytes: copy.contentBytes,
    lease: {
      id: prepared.leaseId,
      task: lease.task,
      holder: lease.holder.kind,
      expiresAtMs: lease.expiresAtMs,
    },
    ...(prepared.downloaded ? { downloaded: prepared.downloaded } : {}),
  }
}
