import type { Socket } from 'node:net'
import { isDscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { ProgressLog } from '../../manifest/progress-log.js'
import type { VerifiedBy } from '../../model/manifest.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../../model/stall-timeout.js'
import { findCacheMemory } from '../../platform/cache-memory.js'
import { findDescriptorLimit, planRequests } from '../../platform/descriptor-limit.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import { readFileSystemKind } from '../../platform/file-system-kind.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import type { Source } from '../../sources/source.js'
import { ArrivalServer } from '../arrivals/arrival-server.js'
import type { Asked } from '../arrivals/arrival-wire.js'
import { OrderOfNeed } from '../arrivals/order-of-need.js'
import type { KeptRepository } from '../cache.js'
import { ByteBudget } from './byte-budget.js'
import { startEarlyFlush } from './early-flush.js'
import { ObjectDownload } from './object-download.js'
import { planDirect } from './plan-direct.js'
import { mayBelieveFiles, recheckAfterReboot } from './recheck.js'
import { reuseBlobs } from './reuse-blobs.js'
import { reusePrevious } from './reuse-previous.js'
import { runSchedule } from './run-schedule.js'
import { Schedule } from './schedule.js'
import { openStale, staleDirectory } from './stale-staging.js'
import { openTransferEngine } from './transfer/open-transfer-engine.js'
import type { TransferEngine } from './transfer/transfer-task.js'
import type { WaitingThreads } from './transfer/waiting-threads.js'

/** Progress of a download. */
export interface DownloadProgress {
  /** Bytes in place: fetched, reused or left by an earlier attempt. */
  readonly writtenBytes: number
  readonly doneFiles: number
}

/** Result of a download. */
export interface Downloaded {
  /** Bytes fetched from the source by this call. */
  readonly fetchedBytes: number
  readonly fetchedFiles: number
  /** Bytes taken from other copies on this node. */
  readonly reusedBytes: number
  readonly reusedFiles: number
  /** Repeated attempts. */
  readonly retries: number
  /** Files of the whole copy, by how they were verified. */
  readonly verifiedBy: Partial<Record<VerifiedBy, number>>
}

interface DownloadOptions {
  readonly source: Source
  readonly copyDirectory: string
  /** Copies on this node from which identical objects are taken; the dataset's own first. */
  readonly reusableDirectories?: readonly string[]
  /** The folder in which hub clients keep the repository: objects are taken from it. */
  readonly kept?: KeptRepository | undefined
  /** Called when the reusable copies are no longer needed. */
  readonly onReused?: (() => Promise<void>) | undefined
  /** An attempt fails after this long without a byte, in ms. Default 30,000. */
  readonly stallTimeoutMs?: number | undefined
  /** Maximum number of requests at once, 1 to 1,024. Default 64. */
  readonly concurrency?: number | undefined
  /** Current maximum of requests at once, 1 or more; read whenever one may start. Absent = `concurrency`. */
  readonly requestLimit?: (() => number) | undefined
  /** Current maximum of bytes per second over all requests; read repeatedly. Absent = no limit. */
  readonly bandwidthLimit?: (() => number) | undefined
  /** Number of transfer threads, 0 = this one. Default: depends on the cores and the work left. */
  readonly threads?: number | undefined
  /** Threads started in advance; the caller ends those left over. */
  readonly waitingThreads?: WaitingThreads | undefined
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined
  /**
   * A reader will follow the download, so little is under way that no reader asked for. Default: once readers connect.
   */
  readonly isReadWhileComing?: boolean | undefined
  /** Whether users other than this one may ask for what they read first, if they may enter the copy's folder. */
  readonly hasOtherReaders?: boolean | undefined
  /** Whether other nodes may send bytes, or sent them to an earlier attempt. */
  readonly hasNodes?: boolean | undefined
  /** Id of the boot, for tests; default: the system's. */
  readonly bootId?: string | undefined
  /** Memory that could hold the files, in bytes, for tests; default: the system's. */
  readonly cacheMemoryBytes?: number | undefined
  readonly signal: AbortSignal
}

/** Requests at once by default. */
export const DEFAULT_CONCURRENCY = 64
const PROGRESS_INTERVAL_MS = 100
/** With room for fewer requests, the descriptors of further threads (11 each) would not fit either. */
const THREADS_FROM_REQUESTS = 32
const PENDING_PAGE_ENTRIES = 1000

/**
 * Fetches all objects that are missing in `copyDirectory`. Stops promptly on `signal`, or on the first failure
 * that retries do not fix; the next call keeps what is finished by then.
 */
export async function downloadFiles(options: DownloadOptions): Promise<Downloaded> {
  const { copyDirectory, signal } = options
  throwIfStopped(signal)
  using manifest = Manifest.open(copyDirectory)
  try {
    const isBegun = manifest.readSetting('boot_id') !== undefined
    await recheckAfterReboot(manifest, copyDirectory, options)
    const isContinued = isBegun && mayBelieveFiles(manifest)
    const reused = { reusedFiles: 0, reusedBytes: 0 }
    const stale = await openStale(copyDirectory, options)
    for (const previous of [...(stale ? [stale] : []), ...(options.reusableDirectories ?? [])]) {
      const taken = await reusePrevious(manifest, { copy: copyDirectory, previous }, signal)
      reused.reusedFiles += taken.reusedFiles
      reused.reusedBytes += taken.reusedBytes
    }
    await options.onReused?.()
    if (options.kept !== undefined) {
      const taken = await reuseBlobs(manifest, { copy: copyDirectory, kept: options.kept }, signal)
      reused.reusedFiles += taken.reusedFiles
      reused.reusedBytes += taken.reusedBytes
    }
    const fetched = await fetchPending(manifest, { ...options, isContinued })
    await removeDirectory(staleDirectory(copyDirectory))
    return { ...fetched, ...reused, verifiedBy: manifest.countByProof() }
  } catch (error) {
    throwIfStopped(signal)
    // The listing names objects that no longer exist: the next attempt must list again.
    if (isDscError(error, 'SOURCE_CHANGED', 'SOURCE_NOT_FOUND')) manifest.writeSetting('stale', '1')
    throw describeDiskFailure(error, copyDirectory)
  }
}

async function fetchPending(manifest: Manifest, options: DownloadOptions & { isContinued: boolean }) {
  const { copyDirectory } = options
  const concurrency = Math.min(
    options.concurrency ?? DEFAULT_CONCURRENCY,
    planRequests(findDescriptorLimit()),
  )
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const log = new ProgressLog(manifest)
  const before = manifest.count('present')
  const left = manifest.count('missing')
  const partBytes = options.source.planPartBytes?.(before.contentBytes + left.contentBytes)
  let writtenBytes = 0
  const report = () => {
    // Bytes that must be fetched again were already shown: hold the figure until progress passes it.
    writtenBytes = Math.max(writtenBytes, before.contentBytes + download.presentBytes)
    options.onProgress?.({ writtenBytes, doneFiles: before.files + download.finishedFiles })
  }
  const onChange = throttle(PROGRESS_INTERVAL_MS, report)
  const flush = startEarlyFlush(copyDirectory)
  const need = new OrderOfNeed<Socket>(manifest.maxId(), manifest.presentIds())
  const budget = new ByteBudget()
  const isRead = () => {
    const { isReadWhileComing, source } = options
    return isReadWhileComing === true || need.readerCount > 0 || source.isShared?.() === true
  }
  const isSpent = () => isRead() && budget.isSpent(performance.now())
  const mayBeDirect = planDirect({
    bytes: left.contentBytes,
    memoryBytes: options.cacheMemoryBytes ?? findCacheMemory(),
    isNetwork: (await readFileSystemKind(copyDirectory)).isNetwork,
  })
  const schedule = new Schedule({
    missing: readMissing(manifest),
    entryOf: (id) => manifest.get(id),
    need,
    isAwaited: (key, partOffset) => options.source.isAwaited?.(key, partOffset) === true,
    mayTakeParts: () => !isSpent(),
    nowMs: () => performance.now(),
  })
  // Its threads report progress from the next turn of the event loop on: the download is made in this one.
  const engine = await openTransferEngine({
    source: options.source,
    left,
    concurrency,
    threads: options.threads ?? (concurrency < THREADS_FROM_REQUESTS ? 0 : undefined),
    waitingThreads: options.waitingThreads,
    stallTimeoutMs: options.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS,
    bandwidthLimit: options.bandwidthLimit,
    signal,
    onChange,
  })
  const download = new ObjectDownload({
    manifest,
    log,
    engine,
    copyDirectory,
    signal,
    partBytes,
    hasNodes: options.hasNodes === true,
    isContinued: options.isContinued,
    isDirect: () => mayBeDirect && !isRead(),
    schedule,
    onChange,
    onWritten: flush.note,
    onArrived: (id) => arrivals.arrived(id),
    onRange: (id) => arrivals.wrote(id),
    onSpoilt: (key) => arrivals.spoilt(key),
  })
  const arrivals = await ArrivalServer.open({
    copyDirectory,
    hasOtherReaders: options.hasOtherReaders,
    need,
    idOf: (key) => manifest.findId(key),
    isWritten: (id, range) => schedule.isWritten(id, range),
    onWant: (wanted, { asked, urgency }) => {
      if (urgency === 'wanted') {
        if (options.source.isShared?.()) hurryElsewhere(engine, asked)
        schedule.hurry(wanted)
      } else schedule.onHurry()
    },
  })
  try {
    await runSchedule({ ...options, concurrency, engine, schedule, download, budget, isSpent, stop })
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

/** If another node was already asked for it, asks that node to fetch it next. */
function hurryElsewhere(engine: TransferEngine, asked: Asked): void {
  if (typeof asked === 'string') engine.hurry(asked)
  else engine.hurry(asked[0], { offset: asked[1], length: asked[2] })
}

/** The objects still to fetch, in the order of keys. Objects fetched since a page was read are behind it. */
function* readMissing(manifest: Manifest): Generator<ManifestEntry, undefined> {
  for (const page of manifest.missingPages(PENDING_PAGE_ENTRIES)) yield* page
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
