import { formatByteSize } from '../../model/byte-size.js'
import { formatDuration } from '../../model/duration.js'
import { formatCount, groupDigits } from '../../model/format-count.js'
import type { Origins } from '../../sources/source.js'
import type { Narrator } from '../surroundings.js'
import { measurePace } from './pace.js'
import type { PrepareProgress } from './prepare-dataset.js'

/** Span over which the rate is measured, in ms: long enough not to jump, short enough to follow changes. */
const RATE_SPAN_MS = 5000

/** Creates a listener that shows a staging's progress: bytes, rate and time left, in one line that replaces itself. */
export function reportProgress(
  report: Narrator,
  dataset: string,
  nowMs: () => number,
): (progress: PrepareProgress) => void {
  const measure = measurePace(RATE_SPAN_MS)
  let hasToldOfRetry = false
  return (progress) => {
    switch (progress.step) {
      case 'listing':
        report.progress(`${dataset}: listing, ${formatCount(progress.objects, 'object')}`)
        break
      case 'retrying':
        // Once: the pauses grow, and each attempt would say the same.
        if (hasToldOfRetry) break
        hasToldOfRetry = true
        report.note(
          `${dataset}: ${progress.problem}; retrying${progress.attemptsLeft === undefined ? ' for some minutes' : `, up to ${formatCount(progress.attemptsLeft, 'more time')}`}`,
        )
        break
      case 'leaving-out':
      case 'healing':
        report.note(`${dataset}: ${progress.problem}`)
        break
      case 'evicting':
        for (const { copy, reason } of progress.victims) {
          report.note(`${dataset}: evicted ${copy.dataset} (${formatByteSize(copy.chargedBytes)}, ${reason})`)
        }
        break
      case 'waiting':
        report.progress(
          `${dataset}: waiting for ${progress.stager}, ${formatByteSize(progress.writtenBytes)} of ${formatByteSize(progress.totalBytes)}`,
          findRatio(progress),
        )
        break
      case 'downloading': {
        const { rate, leftMs } = measure(nowMs(), progress)
        report.progress(
          [
            `${dataset}: ${formatByteSize(progress.writtenBytes)} of ${formatByteSize(progress.totalBytes)}`,
            `${formatByteSize(Math.round(rate))}/s`,
            ...(leftMs === undefined || leftMs < 500
              ? []
              : [`${formatDuration(Math.round(leftMs / 1000) * 1000)} left`]),
            `${groupDigits(progress.doneFiles)}/${formatCount(progress.totalFiles, 'file')}`,
            describeOrigins(progress.origins),
          ].join(', '),
          findRatio(progress),
        )
        break
      }
      case 'publishing':
        report.progress(`${dataset}: syncing to disk`)
    }
  }
}

function findRatio(progress: {
  readonly writtenBytes: number
  readonly totalBytes: number
}): number | undefined {
  return progress.totalBytes > 0 ? progress.writtenBytes / progress.totalBytes : undefined
}

/** `from gpu-02 and the store`: the senders so far. */
function describeOrigins(origins: Origins | undefined): string {
  if (origins === undefined) return 'from the store'
  const peers = Object.keys(origins.peerBytes).filter((node) => origins.peerBytes[node]! > 0)
  const senders = [...peers, ...(origins.storeBytes > 0 || peers.length === 0 ? ['the store'] : [])]
  return `from ${senders.join(' and ')}`
}
