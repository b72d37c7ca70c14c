import type { Leased } from '../../cache/api/node-api.js'
import { hubDirectory } from '../../cache/cache-layout.js'
import { describePrepared, describePreparedCopy } from '../../cache/prepare/describe-prepared.js'
import type { Prepared } from '../../cache/prepare/prepare-dataset.js'
import { formatCount, groupDigits } from '../../model/format-count.js'
import { describeEnd } from './print-ready.js'
import type { Reporter } from './reporter.js'

/**
 * Reports the path of each dataset on stdout (or its folder for HF_HUB_CACHE), in the order in which they were named, or
 * with `--json` the fields that scripts rely on.
 */
export function reportPaths(
  report: Reporter,
  all: readonly Leased[],
  { showsHubCache }: { readonly showsHubCache: boolean },
): void {
  const formatPaths = () => all.map((leased) => choosePath(leased, showsHubCache)).join('\n')
  const [only] = all.length === 1 ? all : []
  const answer = only
    ? describePrepared(only, only.lease)
    : { datasets: all.map((leased) => describePreparedCopy(leased, leased.lease)) }
  report.result(answer, formatPaths)
}

/** Says that datasets stay leased although one that was named after them failed. */
export function noteStillLeased(report: Reporter, all: readonly Leased[]): void {
  for (const { copy, lease } of all)
    report.note(`${copy.dataset} stays leased to "${lease.task}"; dsc release ends that`)
}

function choosePath({ copy }: Prepared, showsHubCache: boolean): string {
  return showsHubCache ? hubDirectory(copy.directory) : copy.path
}

/** Says on stderr how the bytes came, and until when a process has the lease. */
export function notePrepared(report: Reporter, { copy, downloaded, lease }: Leased): void {
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
  const end = describeEnd({ copy, lease })
  if (end !== undefined) report.note(end)
}
