import { join } from 'node:path'
import { isDscError } from '../../failure/dsc-error.js'
import type { VerifiedBy } from '../../model/manifest.js'
import { changeFileMode, onHeldPath } from '../../platform/held-folder.js'
import { filesDirectory } from '../cache-layout.js'
import type { Manifest } from '../manifest/manifest.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { ProgressLog } from '../manifest/progress-log.js'
import { type Part, planPartBytes, planParts } from '../proof/plan-parts.js'
import { type Proof, planProof } from '../proof/plan-proof.js'
import type { FinishedPart } from '../proof/prove-parts.js'
import type { FetchTask } from './task-lanes.js'
import { preallocate } from './transfer/file-sink.js'
import type { TransferObject } from './transfer/transfer.js'
import type { TransferEngine } from './transfer/transfer-task.js'

/** A large object of which parts are on their way. */
interface PartedObject {
  readonly entry: ManifestEntry
  readonly object: TransferObject
  readonly parts: readonly Part[]
  readonly proof: Proof
  readonly finished: (FinishedPart | undefined)[]
  missing: number
  /** Times the whole was fetched and found wrong. */
  mismatches: number
}

interface ObjectDownloadOptions {
  readonly manifest: Manifest
  readonly log: ProgressLog
  readonly engine: TransferEngine
  readonly copyDirectory: string
  readonly onChange: () => void
  /** Called with what is in the files. */
  readonly onWritten: (bytes: number, files: number) => void
  /** Called with the id of an object that is written and proven. */
  readonly onArrived: (id: number) => void
}

const MAX_MISMATCHES = 2

/** Hands objects and their parts to the transfer engine and remembers in the manifest what is finished. */
export class ObjectDownload {
  fetchedBytes = 0
  finishedFiles = 0
  /** Bytes of parts that an earlier attempt left, less those of objects that are fetched again. */
  #keptBytes = 0
  /** Objects fetched again as a whole. */
  #mismatches = 0
  readonly #options: ObjectDownloadOptions
  readonly #files: string
  #queue: { readonly parted: PartedObject; readonly part: Part }[] = []

  constructor(options: ObjectDownloadOptions) {
    this.#options = options
    this.#files = filesDirectory(options.copyDirectory)
  }

  /** Repeated attempts. */
  get retries(): number {
    return this.#mismatches + this.#options.engine.counts.retries
  }

  /** Bytes in place or arriving; an attempt that fails takes its bytes back. */
  get presentBytes(): number {
    return this.#keptBytes + this.#options.engine.counts.receivedBytes
  }

  /** The next part of a large object that was begun. Finishing begun ones first keeps few files half done. */
  nextPart(): FetchTask | undefined {
    const next = this.#queue.shift()
    if (next === undefined) return undefined
    const { parted, part } = next
    const { id, key } = parted.entry
    return { id, key, offset: part.offset, run: () => this.#fetchPart(parted, part) }
  }

  /** Somebody waits for an object: if it was begun, its parts come before those of others. */
  hurry(id: number): void {
    const isHurried = ({ parted }: { readonly parted: PartedObject }) => parted.entry.id === id
    this.#queue = [...this.#queue.filter(isHurried), ...this.#queue.filter((next) => !isHurried(next))]
  }

  /** The task that `fetchObject` is. */
  taskOf(entry: ManifestEntry): FetchTask {
    return { id: entry.id, key: entry.key, offset: 0, run: () => this.fetchObject(entry) }
  }

  /** Fetches a small object; for a large one plans its parts, which `nextPart` then hands out. */
  async fetchObject(entry: ManifestEntry): Promise<void> {
    const object: TransferObject = {
      key: entry.key,
      etag: entry.etag,
      versionId: entry.versionId,
      checksum: entry.checksum,
      sizeBytes: entry.sizeBytes,
      path: join(this.#files, entry.key),
    }
    if (planPartBytes(entry.sizeBytes, null) < entry.sizeBytes) return this.#beginParts(entry, object)
    const { digest, verifiedBy } = await this.#options.engine.run({ kind: 'whole', object })
    this.fetchedBytes += entry.sizeBytes
    this.#options.onWritten(entry.sizeBytes, 1)
    this.#finish(entry, verifiedBy, digest)
  }

  async #beginParts(entry: ManifestEntry, object: TransferObject): Promise<void> {
    const { manifest, log, engine } = this.#options
    const { sizeBytes, etag } = entry
    const facts = entry.facts ?? (await engine.run({ kind: 'inspect', object }))
    const planned = facts.ignoresRanges ? sizeBytes : planPartBytes(sizeBytes, facts.uploadPartBytes)
    const partBytes = entry.partBytes ?? planned
    if (entry.partBytes === null) log.planObject(entry.id, partBytes, facts)
    const parts = planParts(sizeBytes, partBytes)
    const known = manifest.partsOf(entry.id)
    const finished = parts.map(({ number }) => known.get(number))
    preallocate(object.path, sizeBytes)
    const proof = planProof({ sizeBytes, etag, partBytes, facts })
    const missing = parts.filter((part) => !finished[part.number])
    for (const part of parts) if (finished[part.number]) this.#keptBytes += part.length
    const counts = { missing: missing.length, mismatches: 0 }
    const parted: PartedObject = { entry, object, parts, proof, finished, ...counts }
    for (const part of missing) this.#queue.push({ parted, part })
    if (missing.length === 0) await this.#proveParts(parted)
  }

  async #fetchPart(parted: PartedObject, part: Part): Promise<void> {
    const { proof } = parted
    // A digest of the whole in order is made by reading again: it would be of no use per part.
    const proofAlgorithm =
      proof.kind === 'combine' || proof.kind === 'digest-of-digests' ? proof.algorithm : undefined
    const { object } = parted
    const needsDigest = proof.kind === 'size' || (proof.kind === 'digest-of-digests' && !proof.isCertain)
    const isRepeated = parted.mismatches > 0
    const task = { kind: 'part', object, part, proofAlgorithm, needsDigest, isRepeated } as const
    const finished = await this.#options.engine.run(task)
    this.fetchedBytes += part.length
    this.#options.onWritten(part.length, 0)
    parted.finished[part.number] = finished
    this.#options.log.finishPart(parted.entry.id, part.number, finished)
    parted.missing -= 1
    if (parted.missing === 0) await this.#proveParts(parted)
  }

  async #proveParts(parted: PartedObject): Promise<void> {
    const { entry, object, parts, proof } = parted
    const { log, engine } = this.#options
    let verifiedBy: VerifiedBy
    try {
      const finished = parted.finished as FinishedPart[]
      verifiedBy = await engine.run({ kind: 'prove', object, proof, parts, finished })
    } catch (error) {
      // Which part is wrong cannot be told, so all of them are fetched again.
      const isMismatch = isDscError(error, 'CHECKSUM_MISMATCH')
      log.forgetParts(entry.id)
      parted.mismatches += 1
      if (!isMismatch || parted.mismatches > MAX_MISMATCHES) throw error
      this.#mismatches += 1
      this.#keptBytes -= entry.sizeBytes
      parted.finished.fill(undefined)
      parted.missing = parts.length
      for (const part of parts) this.#queue.push({ parted, part })
      return
    }
    onHeldPath(object.path, (path) => changeFileMode(path, 0o444))
    this.#finish(entry, verifiedBy, null)
  }

  #finish(entry: ManifestEntry, verifiedBy: VerifiedBy, digest: string | null): void {
    this.finishedFiles += 1
    this.#options.log.finishObject(entry.id, verifiedBy, digest)
    this.#options.onArrived(entry.id)
    this.#options.onChange()
  }
}
