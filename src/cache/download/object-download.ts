import { join } from 'node:path'
import { isDscError } from '../../failure/dsc-error.js'
import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { ProgressLog } from '../../manifest/progress-log.js'
import type { VerifiedBy } from '../../model/manifest.js'
import type { Urgency } from '../../model/urgency.js'
import { changeFileMode, onHeldPath } from '../../platform/held-path.js'
import type { Part } from '../../proof/plan-parts.js'
import type { FinishedPart } from '../../proof/prove-parts.js'
import { isTold } from '../../sources/untold-etag.js'
import { filesDirectory } from '../cache-layout.js'
import { openPartedObject, type PartedObject, type Portion } from './parted-object.js'
import type { Schedule, Work } from './schedule.js'
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
  /** Other nodes may have sent bytes. */
  readonly hasNodes: boolean
  /** An earlier run of this boot may have left files. */
  readonly isContinued: boolean
  /** Whether a file that begins now should be written past the page cache. */
  readonly isDirect: () => boolean
  readonly onChange: () => void
  /** Called with the bytes and files written to disk. */
  readonly onWritten: (bytes: number, files: number) => void
  /** Called with the id of an object that is written and verified. */
  readonly onArrived: (id: number) => void
  /** Called with the id of an object when more of it is in its file. */
  readonly onRange: (id: number) => void
  /** Called with the key of an object that does not match its source and of which ranges may have been read. */
  readonly onSpoilt: (key: string) => void
  readonly schedule: Pick<Schedule, 'opened' | 'add' | 'finish'>
}

/** Proves what has been fetched, as far as all of it is here. */
type Prove = () => Promise<void>

type PortionWork = Extract<Work, { kind: 'portion' }>

const MAX_MISMATCHES = 2

/** Carries out the work of a schedule with the transfer engine, and records finished ones in the manifest. */
export class ObjectDownload {
  fetchedBytes = 0
  finishedFiles = 0
  /** Bytes of parts left by an earlier attempt, minus those of objects that are fetched again. */
  #keptBytes = 0
  /** Number of times that a whole object was fetched again. */
  #mismatches = 0
  #isOutOfOrder = false
  readonly #options: ObjectDownloadOptions
  readonly #files: string
  /** Objects whose download in parts is open, or being opened. */
  readonly #opened = new Map<number, Promise<PartedObject>>()

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

  /** Carries out what the schedule handed out; `onFetched`: its bytes are here, and only their proof is left. */
  async run(work: Work, urgency: Urgency, onFetched: () => void): Promise<void> {
    if (work.kind === 'portion') {
      if (!work.parted.isInOrder(work.portion)) this.#noteOutOfOrder()
      const isPart = work.portion.length === work.portion.part.length
      const prove = await (isPart ? this.#fetchPart(work, urgency) : this.#fetchRange(work, urgency))
      onFetched()
      await prove()
    } else if (work.kind === 'open') await this.#open(work.entry)
    else if (work.kind === 'parts') await this.#fetchInParts(work.entry)
    else await this.#fetchWhole(work.entry, urgency)
  }

  async #fetchWhole(entry: ManifestEntry, urgency: Urgency): Promise<void> {
    const { sizeBytes } = entry
    const { hasNodes, isContinued } = this.#options
    // Without an etag the left bytes may be of an earlier version.
    const mayGoOn = isContinued && isTold(entry.etag)
    const mayBeLeft = mayGoOn ? ({ mayBeLeft: hasNodes ? 'nodes' : 'source' } as const) : {}
    const task = { kind: 'whole', object: this.#objectOf(entry), urgency, ...mayBeLeft } as const
    const { digest, verifiedBy, leftBytes } = await this.#options.engine.run(task)
    this.fetchedBytes += sizeBytes - leftBytes
    this.#options.onWritten(sizeBytes, 1)
    this.#finish(entry, verifiedBy, digest)
  }

  async #fetchInParts(entry: ManifestEntry): Promise<void> {
    const parted = await this.#open(entry)
    this.#options.schedule.add(parted, parted.missingParts)
    for (const part of parted.missingParts) await this.#digestWritten(parted, part)
    await this.#proveParts(parted)
  }

  #objectOf({ key, etag, versionId, checksum, sizeBytes }: ManifestEntry): TransferObject {
    return { key, etag, versionId, checksum, sizeBytes, path: join(this.#files, key) }
  }

  #open(entry: ManifestEntry): Promise<PartedObject> {
    const known = this.#opened.get(entry.id)
    if (known) return known
    const opened = this.#openAnew(entry)
    this.#opened.set(entry.id, opened)
    return opened
  }

  async #openAnew(entry: ManifestEntry): Promise<PartedObject> {
    const parted = await openPartedObject(this.#options, entry, this.#objectOf(entry))
    for (const part of parted.parts) this.#keptBytes += parted.there.countIn(part)
    this.#options.schedule.opened(parted)
    return parted
  }

  async #fetchPart({ parted, portion }: PortionWork, urgency: Urgency): Promise<Prove> {
    const { object, proofAlgorithm, needsDigest } = parted
    const { part } = portion
    const isRepeated = parted.mismatches > 0
    const task = { kind: 'part', object, part, proofAlgorithm, needsDigest, isRepeated, urgency } as const
    const finished = await this.#options.engine.run(task)
    this.#note(parted, portion, finished.digest)
    return () =>
      parted.hasExtras(part) ? this.#digestWritten(parted, part) : this.#finishPart(parted, part, finished)
  }

  /** Recorded before the first byte that may follow a hole, as a killed run cannot say so any more. */
  #noteOutOfOrder(): void {
    if (this.#isOutOfOrder) return
    this.#isOutOfOrder = true
    this.#options.manifest.writeSetting('out_of_order', '1')
  }

  async #fetchRange({ parted, portion }: PortionWork, urgency: Urgency): Promise<Prove> {
    const { object, needsDigest } = parted
    const { part, offset, length, isExtra } = portion
    const isRepeated = parted.mismatches > 0
    const range = { offset, length }
    const task = { kind: 'range', object, part, range, needsDigest, isRepeated, urgency } as const
    const digest = await this.#options.engine.run(task)
    if (isExtra) this.#keptBytes -= length
    this.#note(parted, portion, digest)
    this.#options.log.wroteBlocks(parted.entry.id, parted.there.bits)
    return () => this.#digestWritten(parted, part)
  }

  #note(parted: PartedObject, portion: Portion, digest: string): void {
    this.fetchedBytes += portion.length
    if (!parted.object.isDirect) this.#options.onWritten(portion.length, 0)
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
      const same = parted.countSame()
      // Until the last attempt, another object may show that etags are right.
      const sameTimes = parted.mismatches < MAX_MISMATCHES ? 0 : same
      verifiedBy = await engine.run({ kind: 'prove', object, proof, parts, finished, sameTimes })
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
      this.#options.schedule.add(parted, parts)
      return
    }
    onHeldPath(object.path, (path) => changeFileMode(path, 0o444))
    this.#opened.delete(entry.id)
    this.#finish(entry, verifiedBy, null)
  }

  #finish(entry: ManifestEntry, verifiedBy: VerifiedBy, digest: string | null): void {
    this.finishedFiles += 1
    this.#options.schedule.finish(entry.id)
    this.#options.log.finishObject(entry.id, verifiedBy, digest)
    this.#options.onArrived(entry.id)
    this.#options.onChange()
  }
}
