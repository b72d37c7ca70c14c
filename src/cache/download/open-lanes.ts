import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Source } from '../../sources/source.js'
import type { ArrivalServer } from '../arrivals/arrival-server.js'
import type { Need } from '../arrivals/order-of-need.js'
import type { ObjectDownload, RangeQueue } from './object-download.js'
import { type FetchTask, TaskLanes } from './task-lanes.js'

const PENDING_PAGE_ENTRIES = 1000

/**
 * What somebody waits for first; then ranges that readers will need, what was begun, objects that readers will need,
 * and the rest by its keys.
 */
export function openLanes(options: {
  readonly source: Source
  readonly manifest: Manifest
  readonly download: ObjectDownload
  readonly need: ArrivalServer['need']
  /** Whether more parts may be taken that nobody waits for. */
  readonly mayTakeParts: () => boolean
}): TaskLanes {
  const { source, manifest, download, need, mayTakeParts } = options
  const pending = readPending(manifest)
  // What stands in a full lane is not taken: a reader may order it before its turn comes.
  const takeRest = (): FetchTask | undefined => {
    for (let next = pending.next(); !next.done; next = pending.next()) {
      const { id } = next.value
      if (need.isToFetch(id)) return { ...download.taskOf(next.value), claim: () => need.take(id) }
    }
    return undefined
  }
  const takeFrom = (queue: RangeQueue, takeNeed: () => Need | undefined): FetchTask | undefined => {
    for (let next = takeNeed(); next !== undefined; next = takeNeed()) {
      if (typeof next === 'number') return download.taskOf(manifest.get(next))
      download.addRange(queue, next)
      const task = download.nextRange(queue)
      if (task) return task
    }
    return undefined
  }
  // Large objects that were begun end before others begin.
  const takePartOr = (takeNext: () => FetchTask | undefined): FetchTask | undefined => {
    const part = mayTakeParts() ? download.nextPart() : undefined
    return part ?? (download.hasParts ? undefined : takeNext())
  }
  const takeOrdered = (): FetchTask | undefined => {
    const range = download.nextRange('ordered')
    if (range || !need.hasOrders) return range
    return takePartOr(() => takeFrom('ordered', () => need.takeOrdered()))
  }
  return new TaskLanes({
    take: {
      wanted: () =>
        download.nextRange('wanted') ??
        download.nextHurriedPart() ??
        takeFrom('wanted', () => need.takeWanted()),
      ordered: takeOrdered,
      listed: () => takePartOr(takeRest),
    },
    // To begin an object takes none of its bytes.
    isAwaited: ({ key, partOffset, bytes }) => bytes > 0 && source.isAwaited?.(key, partOffset) === true,
    nowMs: () => performance.now(),
  })
}

/**
 * The objects that are not in place, by their keys: a large source is listed in another order by each node, and nodes
 * that wait for each other's objects fetch them in one. A page at a time: what is fetched meanwhile is behind the page.
 */
function* readPending(manifest: Manifest): Generator<ManifestEntry, undefined> {
  for (const page of manifest.missingPages(PENDING_PAGE_ENTRIES)) yield* page
}
