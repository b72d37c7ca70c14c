import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import type { DatasetTally, Refusal, Wait } from './history-tally.js'

/** A copy that takes up space and that no task used in the period. */
export interface UnusedCopy {
  readonly dataset: string
  readonly node: string
  readonly diskBytes: number
  readonly lastUsedAtMs: number
  readonly lastTask: string | null
  readonly isLocked: boolean
}

/** Figures on staging over a period. */
export interface ReportFigures
  extends Readonly<
    Pick<DatasetTally, 'uses' | 'hits' | 'readBytes' | 'storeBytes' | 'peerBytes' | 'waitedMs'>
  > {
  readonly sinceMs: number
  readonly untilMs: number
  /** Null = all nodes. */
  readonly node: string | null
  /** Bytes that the store would have sent on top of `storeBytes`, had every use read from it. */
  readonly savedBytes: number
  /** Uses noted by an earlier dsc: they count as hits or waits, but add no bytes. */
  readonly usesOfUnknownSize: number
  /** Datasets used or staged in the period, most bytes read first. */
  readonly datasets: readonly DatasetTally[]
  /** The longest waits. */
  readonly waits: readonly Wait[]
  readonly refusals: readonly Refusal[]
  readonly unused: readonly UnusedCopy[]
}

/** A suggested change, and the figures behind it. */
export interface Advice {
  /** A command, or a setting. */
  readonly change: string
  readonly because: string
}

/** Fewer uses than this say nothing about the hit rate. */
const TELLING_USES = 20
/** Below this fraction of uses, 0 to 1, jobs do not find their data where they run. */
const POOR_HIT_RATE = 0.5
const NAMED = 3

/**
 * Suggests changes from the figures of a period, most promising first. Empty: nothing stands out.
 *
 * | seen                                                  | change                                       |
 * |-------------------------------------------------------|----------------------------------------------|
 * | refused for `maxDatasets` alone                       | raise it: the disk has room                  |
 * | refused for `maxPercent` and not for `minFree`        | raise it, or evict unused copies             |
 * | refused for the disk itself                           | `--stripe`, or a larger disk                 |
 * | evicted and fetched again                             | lock it, or give its users a share           |
 * | unused copies                                         | evict, unlock                                |
 * | few hits                                              | send jobs to where their data is             |
 * | long waits                                            | stage ahead                                  |
 */
export function advise(report: ReportFigures): readonly Advice[] {
  return [
    ...adviseOnRefusals(report),
    ...adviseOnFetchedAgain(report),
    ...adviseOnUnused(report),
    ...adviseOnHits(report),
    ...adviseOnWaits(report),
  ]
}

function adviseOnRefusals({ refusals, unused }: ReportFigures): readonly Advice[] {
  const countOf = (isOfKind: (limits: readonly string[]) => boolean) =>
    refusals.filter(({ limits }) => isOfKind(limits)).reduce((sum, { count }) => sum + count, 0)
  const isFullDisk = (limits: readonly string[]) => limits.includes('minFree') || limits.includes('inodes')
  const byNumber = countOf((limits) => limits.includes('maxDatasets') && limits.length === 1)
  const byQuota = countOf((limits) => limits.includes('maxPercent') && !isFullDisk(limits))
  const byDisk = countOf(isFullDisk)
  const advice: Advice[] = []
  const times = (count: number) => formatCount(count, 'request')
  if (byNumber > 0) {
    const because = `${times(byNumber)} refused for the number of datasets alone: the disk had room`
    advice.push({ change: 'raise cache.maxDatasets', because })
  }
  if (byQuota > 0) {
    const change = unused.length > 0 ? `dsc evict ${unused[0]!.dataset}` : 'raise cache.maxPercent'
    advice.push({ change, because: `${times(byQuota)} refused for cache.maxPercent` })
  }
  if (byDisk > 0) {
    const because = `${times(byDisk)} refused because the file system of the cache was full`
    advice.push({ change: 'a larger disk, or dsc prepare --stripe', because })
  }
  return advice
}

function adviseOnFetchedAgain({ datasets }: ReportFigures): readonly Advice[] {
  return datasets
    .filter(({ stagedAgain }) => stagedAgain > 0)
    .toSorted((a, b) => b.stagedAgainBytes - a.stagedAgainBytes)
    .slice(0, NAMED)
    .map(({ dataset, stagedAgain, stagedAgainBytes }) => ({
      change: `dsc lock ${dataset}, or cache.shares for those who use it`,
      because: `it was evicted and downloaded again ${formatCount(stagedAgain, 'time')}, ${formatByteSize(stagedAgainBytes)}`,
    }))
}

function adviseOnUnused({ unused }: ReportFigures): readonly Advice[] {
  if (unused.length === 0) return []
  const bytes = unused.reduce((sum, copy) => sum + copy.diskBytes, 0)
  const locked = unused.filter(({ isLocked }) => isLocked)
  const names = (copies: typeof unused) => [...new Set(copies.map(({ dataset }) => dataset))].slice(0, NAMED)
  const because = `${formatCount(unused.length, 'copy', 'copies')} of ${formatByteSize(bytes)} not used in this time`
  return [
    { change: `dsc evict ${names(unused).join(' ')}, where space is short`, because },
    ...(locked.length > 0
      ? [{ change: `dsc unlock ${names(locked).join(' ')}`, because: 'they are locked, and unused' }]
      : []),
  ]
}

function adviseOnHits({ uses, hits }: ReportFigures): readonly Advice[] {
  if (uses < TELLING_USES || hits / uses >= POOR_HIT_RATE) return []
  const because = `${Math.round((100 * hits) / uses)}% of uses found their dataset where they ran`
  return [{ change: 'sbatch $(dsc hint <dataset> --prefer), or larger quotas', because }]
}

function adviseOnWaits({ waits }: ReportFigures): readonly Advice[] {
  const [longest] = waits
  if (longest === undefined || longest.waitedMs < 60_000) return []
  const because = `${longest.task} waited ${Math.round(longest.waitedMs / 60_000)} min for it`
  return [{ change: `dsc prepare ${longest.dataset} --prefetch before its jobs begin`, because }]
}
