import { EventEmitter } from 'node:events'
import { isDscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { VerifiedBy } from '../../model/manifest.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../../model/stall-timeout.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import { ArrivalServer } from '../arrivals/arrival-server.js'
import type { Need } from '../arrivals/order-of-need.js'
import { Manifest } from '../manifest/manifest.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { ProgressLog } from '../manifest/progress-log.js'
import type { Source } from '../sources/source.js'
import { startEarlyFlush } from './early-flush.js'
import { ObjectDownload, type RangeQueue } from './object-download.js'
import { recheckAfterReboot } from './recheck.js'
import { reuseBlobs } from './reuse-blobs.js'
import { reusePrevious } from './reuse-previous.js'
import { openStale, staleDirectory } from './stale-staging.js'
import { type FetchTask, type Lane, SORT_AGAIN_MS, TaskLanes } from './task-lanes.js'
import { adaptConcurrency } from './transfer/adapt-concurrency.js'
import { BoundedRun } from './transfer/bounded-run.js'
import { openTransferEngine } from './transfer/open-transfer-engine.js'
import type { TransferEngine } from './transfer/transfer-task.js'
import type { WaitingThreads } from './transfer/waiting-threads.js'

/** How far a download is. */
export interface DownloadProgress {
  /** Bytes in place: fetched, reused or left by an earlier attempt. */
  readonly writtenBytes: number
  readonly doneFiles: number
}

/** What a download did. */
export interface Downloaded {
  /** Bytes that came from the source in this call. */
  readonly fetchedBytes: number
  readonly fetchedFiles: number
  /** Bytes taken from other copies here. */
  readonly reusedBytes: number
  readonly reusedFiles: number
  /** Repeated attempts. */
  readonly retries: number
  /** Files of the whole copy by what proved them. */
  readonly verifiedBy: Partial<Record<VerifiedBy, number>>
}

interface DownloadOptions {
  readonly source: Source
  readonly copyDirectory: string
  /** Copies here from which objects are taken that are the same; the dataset's own first. */
  readonly reusableDirectories?: readonly string[]
  /** A folder of contents by their etags, from which objects are taken. */
  readonly blobs?: string | undefined
  /** Called when the reusable copies are no longer needed. */
  readonly onReused?: (() => Promise<void>) | undefined
  /** No byte for this long fails an attempt, ms. Default 30,000. */
  readonly stallTimeoutMs?: number | undefined
  /** Most requests at once, 1 to 1,024. Default 64. */
  readonly concurrency?: number | undefined
  /** Most requests at once just now, 1 or more; asked whenever one may start. Absent = `concurrency`. */
  readonly requestLimit?: (() => number) | undefined
  /** Most bytes per second over all requests just now; asked again and again. Absent = as fast as it goes. */
  readonly bandwidthLimit?: (() => number) | undefined
  /** Threads that transfer, 0 = this one. Default: by cores and by what there is to fetch. */
  readonly threads?: number | undefined
  /** Threads that were started before; the caller ends those that are left. */
  readonly waitingThreads?: WaitingThreads | undefined
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined
  /** Names the boot, for tests; default: the system's. */
  readonly bootId?: string | undefined
  readonly signal: AbortSignal
}

/** Requests at once unless the caller says otherwise. */
export const DEFAULT_CONCURRENCY = 64
const PROGRESS_INTERVAL_MS = 100
const PENDING_PAGE_ENTRIES = 1000
const LANES: readonly Lane[] = ['direct', 'awaited']

/**
 * Fetches what the manifest of `copyDirectory` still lacks. Stops promptly on `signal` or the first failure that
 * retries do not cure; what is finished by then is kept and not fetched again by the next call.
 */
export async function downloadFiles(options: DownloadOptions): Promise<Downloaded> {
  const { copyDirectory, signal } = options
  throwIfStopped(signal)
  const manifest = Manifest.open(copyDirectory)
  try {
    await recheckAfterReboot(manifest, copyDirectory, options)
    const reused = { reusedFiles: 0, reusedBytes: 0 }
    const stale = await openStale(copyDirectory, options)
    for (const previous of [...(stale ? [stale] : []), ...(options.reusableDirectories ?? [])]) {
      const taken = await reusePrevious(manifest, { copy: copyDirectory, previous }, signal)
      reused.reusedFiles += taken.reusedFiles
      reused.reusedBytes += taken.reusedBytes
    }
    await options.onReused?.()
    if (options.blobs !== undefined) {
      const taken = await reuseBlobs(manifest, { copy: copyDirectory, blobs: options.blobs }, signal)
      reused.reusedFiles += taken.reusedFiles
      reused.reusedBytes += taken.reusedBytes
    }
    const fetched = await fetchPending(manifest, options)
    await removeDirectory(staleDirectory(copyDirectory))
    return { ...fetched, ...reused, verifiedBy: manifest.countByProof() }
  } catch (error) {
    throwIfStopped(signal)
    // The listing describes objects that are no more: the next listing must be a new one.
    if (isDscError(error, 'SOURCE_CHANGED', 'SOURCE_NOT_FOUND')) manifest.writeSetting('stale', '1')
    throw describeDiskFailure(error, copyDirectory)
  } finally {
    manifest.close()
  }
}

async function fetchPending(manifest: Manifest, options: DownloadOptions) {
  const { concurrency = DEFAULT_CONCURRENCY, copyDirectory } = options
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const log = new ProgressLog(manifest)
  const before = manifest.count('present')
  let writtenBytes = 0
  const report = () => {
    // What must be fetched again was shown already: the figure waits until it is passed.
    writtenBytes = Math.max(writtenBytes, before.contentBytes + download.presentBytes)
    options.onProgress?.({ writtenBytes, doneFiles: before.files + download.finishedFiles })
  }
  const onChange = throttle(PROGRESS_INTERVAL_MS, report)
  const engine = await openTransferEngine({
    source: options.source,
    left: manifest.count('missing'),
    concurrency,
    threads: options.threads,
    waitingThreads: options.waitingThreads,
    stallTimeoutMs: options.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS,
    bandwidthLimit: options.bandwidthLimit,
    signal,
    onChange,
  })
  const flush = startEarlyFlush(copyDirectory)
  const wanted = new EventEmitter<{ want: [] }>()
  const arrivals = await ArrivalServer.open({
    copyDirectory,
    maxId: manifest.maxId(),
    there: manifest.presentIds(),
    idOf: (key) => manifest.findId(key),
    isWritten: (id, range) => download.isWritten(id, range),
    onWant: (need) => {
      if (typeof need === 'number') download.hurry(need)
      lanes.hurry(need)
      wanted.emit('want')
    },
  })
  const download = new ObjectDownload({
    manifest,
    log,
    engine,
    copyDirectory,
    partBytes: options.source.partBytes,
    onChange,
    onWritten: flush.note,
    onArrived: (id) => arrivals.arrived(id),
    onRange: (id) => arrivals.wrote(id),
    onSpoilt: (key) => arrivals.spoilt(key),
    isThere: (id) => arrivals.need.isThere(id),
  })
  const lanes = openLanes({ source: options.source, manifest, download, need: arrivals.need })
  try {
    await runTasks({ ...options, concurrency, engine, lanes, wanted, stop })
  } finally {
    arrivals.close()
    await engine.close()
    if (!(await flush.finish())) manifest.writeSetting('must_sync_each', '1')
    log.flush()
  }
  report()
  const { fetchedBytes, finishedFiles, retries } = download
  return { fetchedBytes, fetchedFiles: finishedFiles, retries }
}

/** Keeps as many objects and parts under way as the source takes well, until all are fetched. */
async function runTasks(options: {
  readonly engine: TransferEngine
  readonly lanes: TaskLanes
  /** Tells when somebody began to wait for an object. */
  readonly wanted: EventEmitter<{ want: [] }>
  readonly concurrency: number
  readonly requestLimit?: (() => number) | undefined
  readonly signal: AbortSignal
  /** Aborted at the first failure. */
  readonly stop: AbortController
}): Promise<void> {
  const { engine, lanes, wanted, concurrency, requestLimit = () => concurrency } = options
  const running: Record<Lane, number> = { direct: 0, awaited: 0 }
  let finished = 0
  const readCap = () => Math.max(1, Math.min(concurrency, requestLimit()))
  const adaptive = adaptConcurrency({
    engine,
    readCap,
    finishedTasks: () => finished,
    runningTasks: () => running.direct,
  })
  const limitOf = (lane: Lane) => (lane === 'direct' ? adaptive.current() : readCap())
  const run = new BoundedRun({
    concurrency: () => 2 * readCap(),
    next: () => {
      throwIfStopped(options.signal)
      // What somebody waits for does not wait for parts of 16 MiB that were begun before.
      return lanes.next(
        LANES.filter((lane) => running[lane] < limitOf(lane)),
        LANES.filter((lane) => running[lane] < readCap()),
      )
    },
    run: async ({ task, lane }: { readonly task: FetchTask; readonly lane: Lane }) => {
      running[lane] += 1
      await task.run()
      running[lane] -= 1
      finished += 1
    },
    onFailure: (error) => options.stop.abort(error),
  })
  // All that runs may be waiting for other nodes, and one of them give up.
  const timer = setInterval(() => run.look(), SORT_AGAIN_MS)
  wanted.on('want', () => run.look())
  try {
    await run.done
  } finally {
    clearInterval(timer)
    wanted.removeAllListeners()
    adaptive.stop()
  }
}

/**
 * What somebody waits for first; then ranges that readers will need, what was begun, objects that readers will need,
 * and the rest as it was listed.
 */
function openLanes(options: {
  readonly source: Source
  readonly manifest: Manifest
  readonly download: ObjectDownload
  readonly need: ArrivalServer['need']
}): TaskLanes {
  const { source, manifest, download, need } = options
  const pending = readPending(manifest)
  const takeListed = () => {
    for (let next = pending.next(); !next.done; next = pending.next())
      if (need.take(next.value.id)) return next.value
    return undefined
  }
  const takeRest = () => {
    const entry = takeListed()
    return entry && download.taskOf(entry)
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
  return new TaskLanes({
    takeWanted: () =>
      download.nextRange('wanted') ??
      download.nextHurriedPart() ??
      takeFrom('wanted', () => need.takeWanted()),
    takeNext: () =>
      download.nextRange('ordered') ??
      download.nextPart() ??
      takeFrom('ordered', () => need.takeOrdered()) ??
      takeRest(),
    isAwaited: ({ key, partOffset }) => source.isAwaited?.(key, partOffset) === true,
    nowMs: () => performance.now(),
  })
}

/** The objects that are not in place, a page at a time: what is fetched meanwhile is behind the page. */
function* readPending(manifest: Manifest): Generator<ManifestEntry, undefined> {
  for (const page of manifest.pages('missing', PENDING_PAGE_ENTRIES)) yield* page
}

function throttle(intervalMs: number, call: () => void): () => void {
  let lastMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = performance.now()
    if (nowMs - lastMs < intervalMs) return
    lastMs = nowMs
    call()
  }
}
