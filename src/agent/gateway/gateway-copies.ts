import { setTimeout as sleep } from 'node:timers/promises'
import type { ArrivalOutcome } from '../../cache/arrivals/arriving-reader.js'
import type { ByteRange } from '../../cache/arrivals/block-set.js'
import type { Cache } from '../../cache/cache.js'
import { isOfDefinition } from '../../cache/leases/take-ready-copy.js'
import { type PrepareProgress, prepareDataset } from '../../cache/prepare/prepare-dataset.js'
import { atEnd } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { isOfSqlite } from '../../manifest/manifest-file.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { LOOK_MS } from '../../platform/poll.js'
import type { Source } from '../../sources/source.js'
import { OpenManifests } from '../copies/open-manifests.js'
import { answerInTime } from './answer-in-time.js'
import { ArrivingRanges, type RangesTaken } from './arriving-ranges.js'
import { BelievedCopies } from './believed-copies.js'
import type { GatewayCounts } from './gateway-counts.js'
import { GatewayHolds } from './gateway-holds.js'
import {
  chooseCopy,
  directoryOf,
  isInPlace,
  isPassed,
  type Located,
  objectGone,
  type Pins,
} from './located.js'
import { PassedDatasets } from './passed-datasets.js'
import { S3Error } from './s3-request.js'

/** How long a copy may be missing while it is moved, in ms; after that, it is not merely moving. */
const MAX_MOVE_MS = 10_000
/** How long to leave a failed source alone, in ms: a thousand clients must not hammer it. */
const FAILED_MS = 3000

/**
 * Finds, stages and holds the copies that S3 clients read. Reading holds a copy: by a lease that outlives the last read
 * by `keepMs`. A missing dataset is staged within the limits; if they refuse it, it is passed through.
 */
export class GatewayCopies {
  readonly #arriving: ArrivingRanges
  readonly #cache: Cache
  readonly #counts: Pick<GatewayCounts, 'failed'>
  readonly #note: (sentence: string) => void
  readonly #signal: AbortSignal
  readonly #holds: GatewayHolds
  readonly #believed = new BelievedCopies()
  readonly #asked = new Map<string, Promise<readonly Copy[]>>()
  readonly #stagings = new Map<string, Promise<void>>()
  readonly #failures = new Map<string, { readonly untilMs: number; readonly error: unknown }>()
  /** Clients waiting for objects of a dataset that is being staged. */
  readonly #waits = new Map<string, Set<AbortController>>()
  readonly #manifests = new OpenManifests()
  readonly #passed: PassedDatasets

  constructor(options: {
    readonly cache: Cache
    readonly counts: Pick<GatewayCounts, 'failed'>
    readonly keepMs: number
    readonly ranges: RangesTaken
    readonly signal: AbortSignal
    readonly note: (sentence: string) => void
  }) {
    this.#cache = options.cache
    this.#counts = options.counts
    this.#arriving = new ArrivingRanges({ taken: options.ranges, note: options.note })
    this.#note = options.note
    this.#signal = options.signal
    this.#holds = new GatewayHolds(options)
    this.#passed = new PassedDatasets(options)
  }

  /** Tells the operator. */
  get note(): (sentence: string) => void {
    return this.#note
  }

  /** Tells the operator of a failed download, and counts it. */
  reportFailure({ name }: Dataset, failure: unknown): void {
    this.#counts.failed(name, failure instanceof DscError ? failure.code : 'INTERNAL')
    const message = messageOf(failure)
    // Clients ask again until it comes.
    if (message !== messageOf(this.#failures.get(name)?.error)) this.#note(`${name}: ${message}`)
  }

  /** Opens the source of a dataset while `read` runs. */
  async withSource<Result>(dataset: Dataset, read: (source: Source) => Promise<Result>): Promise<Result> {
    const source = await this.#cache.openSource(dataset)
    await using _ = atEnd(() => source.close())
    return await read(source)
  }

  /** Root of the cache that is read. */
  get root(): string {
    return this.#cache.root
  }

  /** Does the same as `locate` for a ready copy that is known and held right now; undefined: only `locate` can tell. */
  locateAtOnce({ name }: Dataset, pins: Pins): Located | undefined {
    const copy = chooseCopy(this.#believed.find(name) ?? [], pins.get(name))
    if (copy?.state !== 'ready' || !this.#holds.isFresh(copy.copyId)) return undefined
    pins.set(name, copy.copyId)
    return { kind: 'copy', copy }
  }

  /** Where to read a dataset from: its pinned or newest ready copy, else an admitted download, else its source. */
  async locate(dataset: Dataset, pins: Pins): Promise<Located> {
    for (;;) {
      const copy = chooseCopy(await this.#listCopies(dataset), pins.get(dataset.name))
      const passed = this.#passed.find(dataset)
      if (copy !== undefined && (copy.state === 'ready' || !passed)) {
        pins.set(dataset.name, copy.copyId)
        if (copy.state !== 'ready') void this.#stage(dataset) // joins, and takes over from a stager that died
        return { kind: 'copy', copy }
      }
      if (passed) return passed
      const failure = this.#failures.get(dataset.name)
      if (failure && failure.untilMs > performance.now()) throw failure.error
      await this.#stageUntilAdmitted(dataset)
    }
  }

  /** Waits for a range of an object still downloading. `gone`: locate it again. Rejects if the download fails. */
  async waitFor(
    copy: Copy,
    { entry, range }: { readonly entry: ManifestEntry; readonly range: ByteRange },
    signal: AbortSignal,
  ): Promise<ArrivalOutcome> {
    const failed = new AbortController()
    const waits = this.#waits.get(copy.dataset) ?? new Set()
    this.#waits.set(copy.dataset, waits.add(failed))
    try {
      return await this.#arriving.waitFor(copy, entry, range, AbortSignal.any([signal, failed.signal]))
    } catch (error) {
      if (!failed.signal.aborted) throw error
      if (isPassed(failed.signal.reason)) return 'gone'
      throw failed.signal.reason
    } finally {
      waits.delete(failed)
      if (waits.size === 0) this.#waits.delete(copy.dataset)
    }
  }

  /** Protects a located dataset from eviction and closing while `read` runs; a copy, `keepMs` longer. */
  async use<Result>(located: Located, read: () => Promise<Result>): Promise<Result> {
    if (located.kind === 'passed') return this.#passed.use(located, read)
    const held = await this.#holds.use(located.copy, read)
    if (held.isGone) this.#believed.doubt(located.copy.dataset)
    return held.result
  }

  /** Calls `look` with the manifest at the located place; undefined: it was moved this moment; locate it again. */
  look<Result>(located: Located, look: (manifest: Manifest) => Result): Result | undefined {
    if (located.kind === 'copy' && located.copy.state === 'ready')
      return this.#manifests.look(located.copy, look)
    const keys = located.kind === 'passed' ? 'any' : 'paths'
    const manifest = Manifest.findPublished(directoryOf(located), { keys })
    try {
      // A missing listing may still come: a stager whose source changed lists it once more.
      const isListed = manifest?.readSetting('listing') !== undefined
      return manifest && isListed ? look(manifest) : undefined
    } catch (error) {
      // On a full disk, SQLite cannot read a stager's writes: its download is about to end.
      if (isOfSqlite(error)) return undefined
      throw error
    } finally {
      manifest?.close() // a stager cannot publish while the manifest is open
    }
  }

  /**
   * Calls `read` until it finds its data. A copy has no known place between the rename that publishes it and the
   * record's update, and during its eviction. Throws ServiceUnavailable if that lasts.
   */
  async untilFound<Result>(
    datasets: readonly Dataset[],
    read: () => Promise<Result | undefined>,
  ): Promise<Result> {
    // Count looks, not time: `read` may have waited an hour for an object before its copy was published.
    for (let lookedMs = 0; lookedMs < MAX_MOVE_MS; lookedMs += LOOK_MS.progress) {
      const found = await read()
      if (found !== undefined) return found
      for (const { name } of datasets) this.#believed.doubt(name)
      await sleep(LOOK_MS.progress, undefined, { signal: this.#signal })
    }
    const names = datasets.map(({ name }) => name).join(', ')
    throw new S3Error('ServiceUnavailable', `${names}: being moved`, { retryAfterSeconds: 1 })
  }

  /** Renews the holds of copies that are being read; call it at least every third of `keepMs`. */
  async renewHolds(): Promise<void> {
    await this.#holds.renew()
  }

  async close(): Promise<void> {
    this.#arriving.close()
    this.#believed.close()
    this.#manifests.close()
    await Promise.allSettled(this.#stagings.values())
    await this.#passed.close()
  }

  /** Excludes copies of an earlier definition: their keys have another prefix, or were chosen by other filters. */
  async #listCopies(dataset: Dataset): Promise<readonly Copy[]> {
    const { name } = dataset
    const believed = this.#believed.find(name)
    if (believed) return believed
    const answer = this.#believed.readyOf(name)
    const found = await answerInTime(this.#askRecord(name), answer.length > 0 ? { answer } : undefined)
    const whole = found.filter(
      (copy) => !copy.stripe && isInPlace(this.#cache.root, copy) && isOfDefinition(copy, dataset),
    )
    const copies = whole.toSorted((a, b) => b.createdAtMs - a.createdAtMs)
    this.#believed.learn(name, copies)
    return copies
  }

  /** Concurrent callers share one query: a record that is away answers late, or never. */
  #askRecord(dataset: string): Promise<readonly Copy[]> {
    const { record, node } = this.#cache
    const asked =
      this.#asked.get(dataset) ??
      record
        .listCopies({ dataset, node, states: ['ready', 'staging'] }, this.#cache.nowMs())
        .finally(() => this.#asked.delete(dataset))
    this.#asked.set(dataset, asked)
    return asked
  }

  /** Waits until the download is admitted or over. */
  async #stageUntilAdmitted(dataset: Dataset): Promise<void> {
    let isOver = false
    void this.#stage(dataset).finally(() => {
      isOver = true
    })
    while (!isOver) {
      await this.#cache.record.waitForChange({
        pollMs: LOOK_MS.progress,
        atMostMs: 10 * LOOK_MS.progress,
        signal: this.#signal,
      })
      this.#signal.throwIfAborted()
      if ((await this.#listCopies(dataset)).length > 0) return
    }
  }

  /** Stages a dataset in the background, once; remembers a failure for a while. */
  #stage(dataset: Dataset): Promise<void> {
    const known = this.#stagings.get(dataset.name)
    if (known) return known
    const staging = this.#prepare(dataset).finally(() => this.#stagings.delete(dataset.name))
    this.#stagings.set(dataset.name, staging)
    return staging
  }

  async #prepare(dataset: Dataset): Promise<void> {
    const lease = this.#holds.nextLease()
    let isListed = false
    const onProgress = ({ step }: PrepareProgress) => {
      isListed ||= step !== 'retrying'
    }
    try {
      const request = { dataset, lease, isRefresh: false, mayWait: true }
      const options = { signal: this.#signal, onProgress }
      const { copy, leaseId } = await prepareDataset(this.#cache, request, options)
      if (!isInPlace(this.#cache.root, copy))
        throw new DscError('CACHE_ROOT_INVALID', `${copy.directory} does not lie in ${this.#cache.root}`)
      this.#holds.take(copy, { leaseId, expiresAtMs: lease.expiresAtMs })
      // Known from now on, even if the record goes away.
      this.#believed.learn(dataset.name, [copy])
      this.#believed.doubt(dataset.name)
      this.#failures.delete(dataset.name)
    } catch (failure) {
      if (this.#signal.aborted) return
      const error = isListed ? objectGone(failure) : failure
      if (isPassed(error)) this.#passed.begin(dataset, error.message)
      else {
        this.reportFailure(dataset, error)
        this.#failures.set(dataset.name, { untilMs: performance.now() + FAILED_MS, error })
      }
      for (const wait of this.#waits.get(dataset.name) ?? []) wait.abort(error)
    }
  }
}

function messageOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure)
}
