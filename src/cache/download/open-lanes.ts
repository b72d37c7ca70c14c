import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Source } from '../../sources/source.js'
import type { ArrivalServer } from '../arrivals/arrival-server.js'
import type { Need } from '../arrivals/order-of-need.js'
import type { ObjectDownload, RangeQueue } from './object-download.js'
import { type FetchTask, TaskLanes } from './task-lanes.js'

const PENDING_PAGE_ENTRIES = 1000

/**
 * The order of fetching: first any need that a reader waits for; then ranges that readers ordered, parts of opened
 * objects, objects that readers ordered, and the rest in the order of keys.
 */
export function openLanes(options: {
  readonly source: Source
  readonly manifest: Manifest
  readonly download: ObjectDownload
  readonly need: ArrivalServer['need']
  /** Whether more parts may be taken that no reader waits for. */
  readonly mayTakeParts: () => boolean
}): TaskLanes {
  const { source, manifest, download, need, mayTakeParts } = options
  const pending = readPending(manifest)
  // A task in a full lane is not claimed yet: a reader may order its object before its turn comes.
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
  // Finish opened large objects before opening others.
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
    // Opening an object fetches none of its bytes.
    isAwaited: ({ key, partOffset, bytes }) => bytes > 0 && source.isAwaited?.(key, partOffset) === true,
    nowMs: () => performance.now(),
  })
}

/**
 * The objects still to fetch, in the order of keys: nodes may list a large source in different orders, and nodes that
 * wait for each other's objects must fetch them in the same one. Reads a page at a time; objects fetched since then are
 * behind the page.
 */
function* readPending(manifest: Manifest): Generator<ManifestEntry, undefined> {
  for (const page of manifest.missingPages(PENDING_PAGE_ENTRIES)) yield* page
}
