import type { Leased } from '../../cache/api/node-api.js'
import { hubDirectory } from '../../cache/cache-layout.js'
import { describePrepared, describePreparedCopy } from '../../cache/prepare/describe-prepared.js'
import type { Prepared } from '../../cache/prepare/prepare-dataset.js'
import type { PreparedSeveralAnswer } from '../../cache/prepare/prepared-answer.js'
import { formatCount, groupDigits } from '../../model/format-count.js'
import type { LeaseRequest } from '../../model/lease.js'
import type { Reporter } from './reporter.js'

/**
 * Reports a prepared dataset: its path on stdout (or the folder for HF_HUB_CACHE), or with `--json` the fields that
 * scripts rely on.
 */
export function reportPrepared(
  report: Reporter,
  prepared: Prepared,
  { lease, showsHubCache }: { readonly lease: LeaseRequest; readonly showsHubCache: boolean },
): void {
  notePrepared(report, prepared, lease)
  report.result(describePrepared(prepared, lease), () => choosePath(prepared, showsHubCache))
}

/** Does the same for several datasets: a path a line, in the order in which they were named. */
export function reportAllPrepared(
  report: Reporter,
  all: readonly Leased[],
  { showsHubCache }: { readonly showsHubCache: boolean },
): void {
  const [only] = all
  if (all.length === 1 && only) {
    reportPrepared(report, only, { lease: only.lease, showsHubCache })
    return
  }
  for (const prepared of all) notePrepared(report, prepared, prepared.lease)
  const datasets = all.map((prepared) => describePreparedCopy(prepared, prepared.lease))
  const answer: PreparedSeveralAnswer = { dsc: 1, datasets }
  report.result(answer, () => all.map((prepared) => choosePath(prepared, showsHubCache)).join('\n'))
}

function choosePath({ copy }: Prepared, showsHubCache: boolean): string {
  return showsHubCache ? hubDirectory(copy.directory) : copy.path
}

function notePrepared(report: Reporter, { copy, downloaded }: Prepared, lease: LeaseRequest): void {
  if (downloaded) {
    const verified = Object.entries(downloaded.verifiedBy)
      .filter(([, files]) => files > 0)
      .map(([method, files]) => `${groupDigits(files)} by ${method}`)
      .join(', ')
    report.note(
      `${copy.dataset}: ${formatCount(copy.files, 'file')} staged; verified ${verified || 'nothing new'}`,
    )
  }
  for (const [node, problem] of Object.entries(downloaded?.origins?.failed ?? {})) {
    report.note(`${copy.dataset}: node ${node} failed: ${problem}; dsc doctor asks every agent`)
  }
  if (lease.holder.kind === 'process') {
    report.note(`${copy.dataset}: leased until process ${lease.holder.pid} exits`)
  }
}
