import { join } from 'node:path'
import { isDscError } from '../../failure/dsc-error.js'
import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { ProgressLog } from '../../manifest/progress-log.js'
import type { VerifiedBy } from '../../model/manifest.js'
import type { Urgency } from '../../model/urgency.js'
import { changeFileMode, onHeldPath } from '../../platform/held-folder.js'
import { type Part, planPartBytes } from '../../proof/plan-parts.js'
import type { FinishedPart } from '../../proof/prove-parts.js'
import type { ByteRange } from '../arrivals/block-set.js'
import type { RangeNeed } from '../arrivals/order-of-need.js'
import { filesDirectory } from '../cache-layout.js'
import { PartQueue } from './part-queue.js'
import { openPartedObject, type PartedObject, type Portion } from './parted-object.js'
import type { FetchTask } from './task-lanes.js'
import type { TransferObject } from './transfer/arriving-range.js'
import type { TransferEngine } from './transfer/transfer-task.js'

interface ObjectDownloadOptions {
  readonly manifest: Manifest
  readonly log: ProgressLog
  readonly engine: TransferEngine
  readonly copyDirectory: string
  readonly signal: AbortSignal
  /** Part size of large objects, unless their upload parts suit. */
  readonly partBytes: number | undefined
  readonly onChange: () => void
  /** Called with the bytes and files written to disk. */
  readonly onWritten: (bytes: number, files: number) => void
  /** Called with the id of an object that is written and verified. */
  readonly onArrived: (id: number) => void
  /** Called with the id of an object when more of it is in its file. */
  readonly onRange: (id: number) => void
  /** Called with the key of an object that does not match its source and of which ranges may have been read. */
  readonly onSpoilt: (key: string) => void
  /** Whether an object is written and verified. */
  readonly isThere: (id: number) => boolean
}

const MAX_MISMATCHES = 2

/** Ranges to fetch: those that a reader waits for, and those that readers ordered. */
export type RangeQueue = 'wanted' | 'ordered'

/** Hands objects, their parts and ranges to the transfer engine, and records finished ones in the manifest. */
export class ObjectDownload {
  fetchedBytes = 0
  finishedFiles = 0
  /** Bytes of parts left by an earlier attempt, minus those of objects that are fetched again. */
  #keptBytes = 0
  /** Number of times that a whole object was fetched again. */
  #mismatches = 0
  readonly #options: ObjectDownloadOptions
  readonly #files: string
  /** Objects that arrive in parts and are not verified yet. */
  readonly #begun = new Map<number, PartedObject>()
  /** Those, and objects whose download in parts is being opened. */
  readonly #beginning = new Map<number, Promise<PartedObject>>()
  /** Those, and objects about to be opened: none of them is fetched in one piece any more. */
  readonly #parted = new Set<number>()
  /** Objects being fetched in one piece. */
  readonly #whole = new Set<number>()
  readonly #parts = new PartQueue()
  readonly #ranges: Record<RangeQueue, RangeNeed[]> = { wanted: [], ordered: [] }
  /** Ranges of objects that are being opened. */
  readonly #waiting = new Map<number, { readonly queue: RangeQueue; readonly need: RangeNeed }[]>()

  constructor(options: ObjectDownloadOptions) {
    this.#options = options
    this.#files = filesDirectory(options.copyDirectory)
  }

  /** Repeated attempts. */
  get retries(): number {
    return this.#mismatches + this.#options.engine.counts.retries
  }

  /** Bytes in place or arriving; a failed attempt subtracts its bytes. */
  get presentBytes(): number {
    return this.#keptBytes + this.#options.engine.counts.receivedBytes
  }

  /** Whether opened large objects still have parts to fetch. */
  get hasParts(): boolean {
    return !this.#parts.isEmpty
  }

  /** The next part of an opened large object. */
  nextPart(): FetchTask | undefined {
    const next = this.#parts.next()
    return next && this.#taskOfPortion(next.parted, next.portion)
  }

  /** Like `nextPart`, for objects that a reader waits for. */
  nextHurriedPart(): FetchTask | undefined {
    const next = this.#parts.nextHurried()
    return next && this.#taskOfPortion(next.parted, next.portion)
  }

  /** Queues a range of an object, to be fetched before whole objects. */
  addRange(queue: RangeQueue, need: RangeNeed): void {
    this.#ranges[queue].push(need)
  }

  /** The next bytes of queued ranges; undefined: there are none, or their parts are not known yet. */
  nextRange(queue: RangeQueue): FetchTask | undefined {
    const ranges = this.#ranges[queue]
    for (let next = ranges[0]; next; next = ranges[0]) {
      const parted = this.#begun.get(next.id)
      if (parted) {
        const portion = queue === 'wanted' ? parted.takeWanted(next) : parted.take(next)
        if (portion) return this.#taskOfPortion(parted, portion)
        ranges.shift()
        continue
      }
      ranges.shift()
      const begin = this.#taskOfBeginning(queue, next)
      if (begin) return begin
    }
    return undefined
  }

  /** Whether the file of an unfinished object holds the bytes of a range. */
  isWritten(id: number, range: ByteRange): boolean {
    return this.#begun.get(id)?.there.has(range) ?? false
  }

  /** A reader waits for this object: if it is open, its parts come before those of others. */
  hurry(id: number): void {
    this.#parts.hurry(id)
  }

  /** The task that calls `fetchObject`. */
  taskOf(entry: ManifestEntry): FetchTask {
    const { id, key, sizeBytes } = entry
    const range = { offset: 0, length: sizeBytes }
    const bytes = this.#isInParts(entry) ? 0 : sizeBytes
    if (bytes < sizeBytes) this.#parts.expect(id)
    return { id, key, partOffset: 0, range, bytes, run: (urgency) => this.fetchObject(entry, urgency) }
  }

  /** Fetches a small object; for a large one, plans the parts that `nextPart` then hands out. */
  async fetchObject(entry: ManifestEntry, urgency: Urgency): Promise<void> {
    const { id, sizeBytes } = entry
    if (this.#isInParts(entry)) return this.#fetchInParts(entry)
    this.#whole.add(id)
    const task = { kind: 'whole', object: this.#objectOf(entry), urgency } as const
    const { digest, verifiedBy } = await this.#options.engine.run(task)
    this.#whole.delete(id)
    this.fetchedBytes += sizeBytes
    this.#options.onWritten(sizeBytes, 1)
    this.#finish(entry, verifiedBy, digest)
  }

  #isInParts({ id, sizeBytes, partBytes }: ManifestEntry): boolean {
    return partBytes !== null || this.#parted.has(id) || planPartBytes(sizeBytes, null) < sizeBytes
  }

  async #fetchInParts(entry: ManifestEntry): Promise<void> {
    const parted = await this.#begin(entry)
    this.#parts.add(parted, parted.missingParts)
    for (const part of parted.missingParts) await this.#digestWritten(parted, part)
    await this.#proveParts(parted)
  }

  #objectOf({ key, etag, versionId, checksum, sizeBytes }: ManifestEntry): TransferObject {
    return { key, etag, versionId, checksum, sizeBytes, path: join(this.#files, key) }
  }

  /**
   * The task that opens an object for a needed range; undefined if another task does so, or no range is needed any
   * more.
   */
  #taskOfBeginning(queue: RangeQueue, need: RangeNeed): FetchTask | undefined {
    const { id } = need
    if (this.#whole.has(id) || this.#options.isThere(id)) return undefined
    const waiting = this.#waiting.get(id)
    this.#waiting.set(id, [...(waiting ?? []), { queue, need }])
    if (waiting || this.#beginning.has(id)) return undefined
    this.#parted.add(id)
    const entry = this.#options.manifest.get(id)
    const run = async () => void (await this.#begin(entry))
    return { id, key: entry.key, partOffset: 0, range: { offset: 0, length: 0 }, bytes: 0, run }
  }

  #begin(entry: ManifestEntry): Promise<PartedObject> {
    const begun = this.#beginning.get(entry.id) ?? this.#open(entry)
    this.#beginning.set(entry.id, begun)
    return begun
  }

  async #open(entry: ManifestEntry): Promise<PartedObject> {
    const parted = await openPartedObject(this.#options, entry, this.#objectOf(entry))
    for (const part of parted.parts) this.#keptBytes += parted.there.countIn(part)
    this.#begun.set(entry.id, parted)
    for (const { queue, need } of this.#waiting.get(entry.id)?.toReversed() ?? [])
      this.#ranges[queue].unshift(need)
    this.#waiting.delete(entry.id)
    return parted
  }

  #taskOfPortion(parted: PartedObject, portion: Portion): FetchTask {
    const { id, key } = parted.entry
    const { part, length } = portion
    const run = (urgency: Urgency) =>
      length === part.length
        ? this.#fetchPart(parted, portion, urgency)
        : this.#fetchRange(parted, portion, urgency)
    return { id, key, partOffset: part.offset, range: portion, bytes: length, run }
  }

  async #fetchPart(parted: PartedObject, portion: Portion, urgency: Urgency): Promise<void> {
    const { object, proofAlgorithm, needsDigest } = parted
    const { part } = portion
    const isRepeated = parted.mismatches > 0
    const task = { kind: 'part', object, part, proofAlgorithm, needsDigest, isRepeated, urgency } as const
    const finished = await this.#options.engine.run(task)
    this.#note(parted, portion, finished.digest)
    if (parted.hasExtras(part)) await this.#digestWritten(parted, part)
    else await this.#finishPart(parted, part, finished)
  }

  async #fetchRange(parted: PartedObject, portion: Portion, urgency: Urgency): Promise<void> {
    const { object, needsDigest } = parted
    const { part, offset, length, isExtra } = portion
    const isRepeated = parted.mismatches > 0
    const range = { offset, length }
    const task = { kind: 'range', object, part, range, needsDigest, isRepeated, urgency } as const
    const digest = await this.#options.engine.run(task)
    if (isExtra) this.#keptBytes -= length
    this.#note(parted, portion, digest)
    this.#options.log.wroteBlocks(parted.entry.id, parted.there.bits)
    await this.#digestWritten(parted, part)
  }

  #note(parted: PartedObject, portion: Portion, digest: string): void {
    this.fetchedBytes += portion.length
    this.#options.onWritten(portion.length, 0)
    parted.wrote(portion, digest)
    this.#options.onRange(parted.entry.id)
  }

  async #digestWritten(parted: PartedObject, part: Part): Promise<void> {
    if (!parted.takeWritten(part)) return
    const { object, proofAlgorithm, entry } = parted
    const { engine, onSpoilt } = this.#options
    for (const { offset, length, digest } of parted.extrasOf(part)) {
      const range = { offset, length }
      const task = { kind: 'digest', object, part: range, proofAlgorithm: 'crc32' } as const
      if ((await engine.run(task)).proof !== digest) onSpoilt(entry.key) // readers got other bytes than the file keeps
    }
    const finished = await engine.run({ kind: 'digest', object, part, proofAlgorithm })
    await this.#finishPart(parted, part, finished)
  }

  async #finishPart(parted: PartedObject, part: Part, finished: FinishedPart): Promise<void> {
    parted.finished[part.number] = finished
    this.#options.log.finishPart(parted.entry.id, part.number, finished)
    await this.#proveParts(parted)
  }

  async #proveParts(parted: PartedObject): Promise<void> {
    if (!parted.takeProof()) return
    const { entry, object, parts, proof } = parted
    const { log, engine } = this.#options
    let verifiedBy: VerifiedBy
    try {
      const finished = parted.finished as FinishedPart[]
      verifiedBy = await engine.run({ kind: 'prove', object, proof, parts, finished })
      parted.refuseHearsay(verifiedBy)
    } catch (error) {
      // There is no telling which part is wrong, so fetch them all again.
      const isMismatch = isDscError(error, 'CHECKSUM_MISMATCH')
      log.forgetParts(entry.id)
      if (isMismatch) this.#options.onSpoilt(entry.key)
      parted.mismatches += 1
      if (!isMismatch || parted.mismatches > MAX_MISMATCHES) throw error
      this.#mismatches += 1
      this.#keptBytes -= entry.sizeBytes
      parted.restart()
      this.#parts.add(parted, parts)
      return
    }
    onHeldPath(object.path, (path) => changeFileMode(path, 0o444))
    this.#begun.delete(entry.id)
    this.#beginning.delete(entry.id)
    this.#parted.delete(entry.id)
    this.#finish(entry, verifiedBy, null)
  }

  #finish(entry: ManifestEntry, verifiedBy: VerifiedBy, digest: string | null): void {
    this.finishedFiles += 1
    this.#parts.forget(entry.id)
    this.#options.log.finishObject(entry.id, verifiedBy, digest)
    this.#options.onArrived(entry.id)
    this.#options.onChange()
  }
}
