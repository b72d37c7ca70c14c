import { SourceFailure } from '../../../failure/source-failure.js'
import type { ObjectChecksum } from '../../../model/manifest.js'
import { algorithmOf, createDigest, type Digest, type DigestAlgorithm } from '../../../proof/digest.js'
import type { ObjectFacts } from '../../../proof/object-facts.js'
import { requireDigest } from '../../../proof/require-digest.js'
import { type SmallMd5, startSmallMd5 } from '../../../proof/small-md5.js'
import type { Fetcher, FetchRequest, GivenDigest } from '../../../sources/source.js'
import { isTold } from '../../../sources/untold-etag.js'
import type { ByteRange } from '../../arrivals/block-set.js'
import { FileSink } from './file-sink.js'
import type { FileTurns } from './file-turns.js'
import type { KeptFolders } from './kept-folders.js'

/** An object as a transfer needs it: plain data that can be sent to a worker. */
export interface TransferObject {
  readonly key: string
  readonly etag: string | null
  readonly versionId: string | null
  /** As listed by the source. */
  readonly checksum?: ObjectChecksum | null
  readonly sizeBytes: number
  /** Absolute path of the file. */
  readonly path: string
  /** Its ranges are written past the page cache, if the file system can. */
  readonly isDirect?: boolean
}

/** Tools to fetch an object with. */
export interface TransferTools {
  readonly fetcher: Fetcher
  readonly folders: KeptFolders
  /** Turns at writing, shared by all threads of the staging. Absent: only one thread writes. */
  readonly turns?: FileTurns | undefined
}

/** Limits of one attempt. */
export interface AttemptLimits {
  readonly stallTimeoutMs: number
  readonly signal: AbortSignal
  /** Called with the size of each chunk, in bytes; returns how long to wait before the next, in ms. */
  readonly onBytes?: (bytes: number) => number
  /** Called with the number of bytes that must be fetched again. */
  readonly onLost?: (bytes: number) => void
}

/** Digests of one range, made as it arrives: those requested, and those that another node states. */
class ArrivingDigests {
  readonly #made = new Map<DigestAlgorithm, Digest | SmallMd5>()
  readonly #lengthBytes: number

  constructor(lengthBytes: number) {
    this.#lengthBytes = lengthBytes
  }

  add(algorithm: DigestAlgorithm): void {
    if (this.#made.has(algorithm)) return
    const shared = algorithm === 'md5' ? startSmallMd5(this.#lengthBytes) : undefined
    this.#made.set(algorithm, shared ?? createDigest(algorithm, this.#lengthBytes))
  }

  update(chunk: Uint8Array): void {
    for (const digest of this.#made.values()) digest.update(chunk)
  }

  /** Resolves with the digests, by algorithm. Call either this or `drop`, once. */
  async finish(): Promise<ReadonlyMap<DigestAlgorithm, Buffer>> {
    const made = [...this.#made.values()]
    this.#made.clear()
    const found = new Map<DigestAlgorithm, Buffer>()
    for (const digest of made) found.set(digest.algorithm, await digest.finish())
    return found
  }

  drop(): void {
    for (const digest of this.#made.values()) if ('drop' in digest) digest.drop()
    this.#made.clear()
  }
}

/** A range of an object on its way into a file. An attempt resumes where the previous one stopped. */
export class ArrivingRange {
  facts: ObjectFacts | undefined
  readonly #tools: TransferTools
  readonly #object: TransferObject
  readonly #range: ByteRange
  readonly #asks: Pick<FetchRequest, 'needsDigest' | 'isRepeated' | 'partOffset' | 'urgency'>
  /** Chooses the digests to make, before the first byte. */
  readonly #chooseDigests: (given: GivenDigest | undefined) => readonly DigestAlgorithm[]
  #sink: FileSink | undefined
  #digests: ArrivingDigests
  #given: GivenDigest | undefined
  #receivedBytes = 0
  /** Bytes of an earlier run that are still kept. */
  leftBytes = 0

  constructor(options: {
    readonly tools: TransferTools
    readonly object: TransferObject
    readonly range: ByteRange
    readonly asks: Pick<FetchRequest, 'needsDigest' | 'isRepeated' | 'partOffset' | 'urgency'>
    readonly chooseDigests: (given: GivenDigest | undefined) => readonly DigestAlgorithm[]
  }) {
    this.#tools = options.tools
    this.#object = options.object
    this.#range = options.range
    this.#asks = options.asks
    this.#chooseDigests = options.chooseDigests
    this.#digests = new ArrivingDigests(options.range.length)
  }

  /** Begins after `bytes` that an earlier run left in the file. Call before the first attempt. */
  goOn(bytes: number, facts: ObjectFacts): void {
    this.facts = facts
    this.#addDigests()
    try {
      this.#openSink().goOn(bytes)
    } catch (error) {
      this.discard({})
      throw error
    }
    this.#receivedBytes = bytes
    this.leftBytes = bytes
  }

  /** Reads the missing bytes and has `prove` check the digests; discards everything if the bytes may be wrong. */
  async attempt<Value>(
    limits: AttemptLimits,
    prove: (digests: ReadonlyMap<DigestAlgorithm, Buffer>, given: GivenDigest | undefined) => Value,
  ): Promise<Value> {
    const sink = this.#openSink()
    try {
      await this.#readRest(sink, limits)
      if (this.#receivedBytes === 0) this.#addDigests()
      sink.flush()
      const digests = await this.#digests.finish()
      if (this.#given) requireGiven(this.#object.key, this.#given.digest, digests)
      const value = prove(digests, this.#given)
      sink.finish()
      return value
    } catch (error) {
      const isComplete = this.#receivedBytes === this.#range.length
      const isSound = limits.signal.aborted || mayGoOn(error)
      if (isComplete || !isTold(this.#object.etag) || !isSound) this.discard(limits)
      throw error
    }
  }

  /** Discards the bytes received so far. */
  discard(limits: Pick<AttemptLimits, 'onLost'>): void {
    this.#sink?.discard()
    this.#sink = undefined
    this.#digests.drop()
    this.#digests = new ArrivingDigests(this.#range.length)
    this.#given = undefined
    this.facts = undefined
    limits.onLost?.(this.#receivedBytes)
    this.#receivedBytes = 0
    this.leftBytes = 0
  }

  /** Leaves the bytes received so far to a later run. */
  leave(): void {
    this.#digests.drop()
    this.#sink?.leave()
    this.#sink = undefined
  }

  async #readRest(sink: FileSink, limits: AttemptLimits): Promise<void> {
    const { offset, length } = this.#range
    const beganAt = this.#receivedBytes
    if (beganAt === length) return
    const { stallTimeoutMs, signal } = limits
    await this.#tools.fetcher.fetch({
      ...this.#object,
      offset: offset + beganAt,
      length: length - beganAt,
      stallTimeoutMs,
      signal,
      ...this.#asks,
      needsDigest: this.#asks.needsDigest === true && this.#given === undefined,
      // The answer to a request for the rest tells less than the one for the whole.
      onFacts: (found) => {
        if (beganAt === 0) this.facts = found
      },
      onDigest: (given) => {
        if (beganAt === 0) this.#given = given
      },
      findRoom: () => sink.room,
      sink: (chunk) => {
        if (this.#receivedBytes === 0) this.#addDigests()
        this.#receivedBytes += chunk.length
        sink.write(chunk)
        return limits.onBytes?.(chunk.length) ?? 0
      },
    })
  }

  #addDigests(): void {
    for (const algorithm of this.#chooseDigests(this.#given)) this.#digests.add(algorithm)
    if (this.#given) this.#digests.add(algorithmOf(this.#given.digest))
  }

  #openSink(): FileSink {
    const { offset, length } = this.#range
    const isWhole = offset === 0 && length === this.#object.sizeBytes
    const { path, isDirect } = this.#object
    const beforeWrite = (bytes: Uint8Array) => this.#digests.update(bytes)
    this.#sink ??= new FileSink(path, { ...this.#tools, offset, length, isWhole, isDirect, beforeWrite })
    return this.#sink
  }
}

/**
 * Whether the next attempt can use the bytes received: the transfer broke off, or its credentials ran out, and nothing
 * says that they are wrong.
 */
function mayGoOn(error: unknown): boolean {
  if (!(error instanceof SourceFailure) || error.code === 'CHECKSUM_MISMATCH') return false
  return error.isTransient || error.code === 'SOURCE_DENIED'
}

/** Throws CHECKSUM_MISMATCH unless the bytes have the digest that their sender stated. */
function requireGiven(key: string, given: string, digests: ReadonlyMap<DigestAlgorithm, Buffer>): void {
  const algorithm = algorithmOf(given)
  const expected = Buffer.from(given.slice(algorithm.length + 1), 'base64').toString('hex')
  requireDigest(key, { algorithm, expected }, digests.get(algorithm)!)
}
