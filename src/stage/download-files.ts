import { isDscError } from '../failure/dsc-error.js'
import type { VerifiedBy } from '../model/manifest.js'
import { describeDiskFailure } from './disk-failure.js'
import { startEarlyFlush } from './early-flush.js'
import { openManifest, writeSetting } from './manifest-db.js'
import { ObjectDownload } from './object-download.js'
import type { ObjectRow } from './object-row.js'
import { ProgressLog } from './progress-log.js'
import { MUST_SYNC_EACH } from './publish-copy.js'
import { recheckAfterReboot } from './recheck.js'
import { removeDirectory } from './remove-directory.js'
import { throwIfStopped } from './retry.js'
import { reusePrevious } from './reuse-previous.js'
import type { Source } from './source.js'
import { openStale, staleDirectory } from './stale-staging.js'
import { adaptConcurrency } from './transfer/adapt-concurrency.js'
import { openEngine } from './transfer/open-engine.js'
import { runBounded } from './transfer/run-bounded.js'

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
  /** Bytes taken from the previous copy. */
  readonly reusedBytes: number
  readonly reusedFiles: number
  /** Repeated attempts. */
  readonly retries: number
  /** Files of the whole copy by what proved them. */
  readonly verifiedBy: Partial<Record<VerifiedBy, number>>
}

export interface DownloadOptions {
  readonly source: Source
  readonly copyDirectory: string
  readonly previousCopyDirectory?: string | undefined
  /** Called when the previous copy is no longer needed. */
  readonly onReused?: (() => Promise<void>) | undefined
  /** No byte for this long fails an attempt, ms. Default 60,000. */
  readonly stallTimeoutMs?: number | undefined
  /** Most requests at once, 1 to 1,024. Default 64. */
  readonly concurrency?: number | undefined
  /** Most requests at once just now, 1 or more; asked whenever one may start. Absent = `concurrency`. */
  readonly requestLimit?: (() => number) | undefined
  /** Most bytes per second over all requests just now; asked again and again. Absent = as fast as it goes. */
  readonly bandwidthLimit?: (() => number) | undefined
  /** Threads that transfer, 0 = this one. Default: by cores and by what there is to fetch. */
  readonly threads?: number | undefined
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined
  /** Names the boot, for tests; default: the system's. */
  readonly bootId?: string | undefined
  readonly signal: AbortSignal
}

const DEFAULT_CONCURRENCY = 64
const DEFAULT_STALL_TIMEOUT_MS = 60_000
const PROGRESS_INTERVAL_MS = 100

/**
 * Fetches what the manifest of `copyDirectory` still lacks. Stops promptly on `signal` or the first failure that
 * retries do not cure; what is finished by then is kept and not fetched again by the next call.
 */
export async function downloadFiles(options: DownloadOptions): Promise<Downloaded> {
  const { copyDirectory, signal } = options
  throwIfStopped(signal)
  const db = openManifest(copyDirectory)
  try {
    await recheckAfterReboot(db, copyDirectory, options)
    const reused = { reusedFiles: 0, reusedBytes: 0 }
    for (const previous of [await openStale(copyDirectory, options), options.previousCopyDirectory]) {
      if (previous === undefined) continue
      const { reusedFiles, reusedBytes } = await reusePrevious(db, copyDirectory, previous, signal)
      reused.reusedFiles += reusedFiles
      reused.reusedBytes += reusedBytes
    }
    await options.onReused?.()
    const fetched = await fetchPending(db, options)
    await removeDirectory(staleDirectory(copyDirectory))
    const counts = db
      .prepare<[], { verified_by: VerifiedBy; files: number }>(
        'SELECT verified_by, count(*) AS files FROM object WHERE state = 1 GROUP BY verified_by',
      )
      .all()
    const verifiedBy = Object.fromEntries(counts.map((row) => [row.verified_by, row.files]))
    return { ...fetched, ...reused, verifiedBy }
  } catch (error) {
    throwIfStopped(signal)
    // The listing describes objects that are no more: the next listing must be a new one.
    if (isDscError(error, 'SOURCE_CHANGED', 'SOURCE_NOT_FOUND')) writeSetting(db, 'stale', '1')
    throw describeDiskFailure(error, copyDirectory)
  } finally {
    db.close()
  }
}

async function fetchPending(db: ReturnType<typeof openManifest>, options: DownloadOptions) {
  const { concurrency = DEFAULT_CONCURRENCY, requestLimit = () => concurrency } = options
  const readCap = () => Math.max(1, Math.min(concurrency, requestLimit()))
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const log = new ProgressLog(db)
  const before = db
    .prepare<[], { files: number; bytes: number }>(
      'SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS bytes FROM object WHERE state = 1',
    )
    .get()!
  const report = throttle(PROGRESS_INTERVAL_MS, () =>
    options.onProgress?.({
      writtenBytes: before.bytes + download.presentBytes,
      doneFiles: before.files + download.finishedFiles,
    }),
  )
  const left = db
    .prepare<[], { files: number; bytes: number }>(
      'SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS bytes FROM object WHERE state = 0',
    )
    .get()!
  const engine = await openEngine({
    source: options.source,
    left,
    concurrency,
    threads: options.threads,
    stallTimeoutMs: options.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS,
    bandwidthLimit: options.bandwidthLimit,
    signal,
    onChange: report,
  })
  const flush = startEarlyFlush(options.copyDirectory)
  const onWritten = flush.note
  const download = new ObjectDownload({ db, log, engine, ...options, onChange: report, onWritten })
  const pending = readPending(db)
  const tasks = { running: 0, finished: 0 }
  const adaptive = adaptConcurrency({
    engine,
    readCap,
    finishedTasks: () => tasks.finished,
    runningTasks: () => tasks.running,
  })
  try {
    await runBounded({
      concurrency: adaptive.current,
      next: () => {
        throwIfStopped(options.signal)
        const part = download.nextPart()
        if (part) return part
        const { value: row } = pending.next()
        return row && (() => download.fetchObject(row))
      },
      run: async (task) => {
        tasks.running += 1
        await task()
        tasks.running -= 1
        tasks.finished += 1
      },
      onFailure: (error) => stop.abort(error),
    })
  } finally {
    adaptive.stop()
    await engine.close()
    if (!(await flush.finish())) writeSetting(db, MUST_SYNC_EACH, '1')
    log.flush()
  }
  options.onProgress?.({
    writtenBytes: before.bytes + download.presentBytes,
    doneFiles: before.files + download.finishedFiles,
  })
  return {
    fetchedBytes: download.fetchedBytes,
    fetchedFiles: download.finishedFiles,
    retries: download.retries,
  }
}

/** The objects that are not in place, a page at a time: what is fetched meanwhile is behind the page. */
function* readPending(db: ReturnType<typeof openManifest>): Generator<ObjectRow, undefined> {
  const page = db.prepare<[number], ObjectRow>(
    'SELECT * FROM object WHERE id > ? AND state = 0 ORDER BY id LIMIT 1000',
  )
  for (let lastId = 0; ; ) {
    const rows = page.all(lastId)
    if (rows.length === 0) return
    yield* rows
    lastId = rows.at(-1)!.id
  }
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
