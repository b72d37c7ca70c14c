import { hubDirectory } from '../../cache/cache-layout.js'
import { describePrepared } from '../../cache/prepare/describe-prepared.js'
import type { Prepared } from '../../cache/prepare/prepare-dataset.js'
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
  const { copy, downloaded } = prepared
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
  report.result(describePrepared(prepared, lease), () =>
    showsHubCache ? hubDirectory(copy.directory) : copy.path,
  )
}
