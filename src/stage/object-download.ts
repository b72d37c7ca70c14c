import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { isDscError } from '../failure/dsc-error.js'
import type { VerifiedBy } from '../model/manifest.js'
import { filesDirectory } from './cache-layout.js'

import type { ObjectRow } from './object-row.js'
import type { ObjectFacts } from './plan/object-facts.js'
import { type Part, planPartBytes, planParts } from './plan/plan-parts.js'
import { type Proof, planProof } from './plan/plan-proof.js'
import type { ProgressLog } from './progress-log.js'
import { preallocate } from './transfer/file-sink.js'
import type { FinishedPart } from './transfer/prove-parts.js'
import type { TransferObject } from './transfer/transfer.js'
import type { TransferEngine } from './transfer/transfer-task.js'

/** A large object of which parts are on their way. */
interface PartedObject {
  readonly row: ObjectRow
  readonly object: TransferObject
  readonly parts: readonly Part[]
  readonly proof: Proof
  readonly finished: (FinishedPart | undefined)[]
  missing: number
  /** Times the whole was fetched and found wrong. */
  mismatches: number
}

interface ObjectDownloadOptions {
  readonly db: Database.Database
  readonly log: ProgressLog
  readonly engine: TransferEngine
  readonly copyDirectory: string
  readonly onChange: () => void
  /** Called with what is in the files. */
  readonly onWritten: (bytes: number, files: number) => void
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
  readonly #queue: { readonly parted: PartedObject; readonly part: Part }[] = []

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
  nextPart(): (() => Promise<void>) | undefined {
    const next = this.#queue.shift()
    return next && (() => this.#fetchPart(next.parted, next.part))
  }

  /** Fetches a small object; for a large one plans its parts, which `nextPart` then hands out. */
  async fetchObject(row: ObjectRow): Promise<void> {
    const object: TransferObject = {
      key: row.key,
      etag: row.etag,
      versionId: row.version_id,
      sizeBytes: row.size_bytes,
      path: join(this.#files, row.key),
    }
    if (planPartBytes(row.size_bytes, null) < row.size_bytes) return this.#beginParts(row, object)
    const { digest, verifiedBy } = await this.#options.engine.run({ kind: 'whole', object })
    this.fetchedBytes += row.size_bytes
    this.#options.onWritten(row.size_bytes, 1)
    this.#finish(row, verifiedBy, digest)
  }

  async #beginParts(row: ObjectRow, object: TransferObject): Promise<void> {
    const { db, log, engine } = this.#options
    const facts = row.facts
      ? (JSON.parse(row.facts) as ObjectFacts)
      : await engine.run({ kind: 'inspect', object })
    const partBytes = row.part_bytes ?? planPartBytes(row.size_bytes, facts.uploadPartBytes)
    if (row.part_bytes === null) log.planObject(row.id, partBytes, JSON.stringify(facts))
    const parts = planParts(row.size_bytes, partBytes)
    const finished: (FinishedPart | undefined)[] = parts.map(() => undefined)
    const known = db
      .prepare<[number], FinishedPart & { number: number }>('SELECT * FROM part WHERE object_id = ?')
      .all(row.id)
    for (const { number, digest, proof } of known) finished[number] = { digest, proof }
    preallocate(object.path, row.size_bytes)
    const proof = planProof({ sizeBytes: row.size_bytes, etag: row.etag, partBytes, facts })
    const missing = parts.filter((part) => !finished[part.number])
    for (const part of parts) if (finished[part.number]) this.#keptBytes += part.length
    const parted: PartedObject = {
      row,
      object,
      parts,
      proof,
      finished,
      missing: missing.length,
      mismatches: 0,
    }
    for (const part of missing) this.#queue.push({ parted, part })
    if (missing.length === 0) await this.#proveParts(parted)
  }

  async #fetchPart(parted: PartedObject, part: Part): Promise<void> {
    const { proof } = parted
    // A digest of the whole in order is made by reading again: it would be of no use per part.
    const proofAlgorithm =
      proof.kind === 'combine' || proof.kind === 'digest-of-digests' ? proof.algorithm : undefined
    const { object } = parted
    const finished = await this.#options.engine.run({ kind: 'part', object, part, proofAlgorithm })
    this.fetchedBytes += part.length
    this.#options.onWritten(part.length, 0)
    parted.finished[part.number] = finished
    this.#options.log.finishPart(parted.row.id, part.number, finished)
    parted.missing -= 1
    if (parted.missing === 0) await this.#proveParts(parted)
  }

  async #proveParts(parted: PartedObject): Promise<void> {
    const { row, object, parts, proof } = parted
    const { log, engine } = this.#options
    let verifiedBy: VerifiedBy
    try {
      const finished = parted.finished as FinishedPart[]
      verifiedBy = await engine.run({ kind: 'prove', object, proof, parts, finished })
    } catch (error) {
      // Which part is wrong cannot be told, so all of them are fetched again.
      const isMismatch = isDscError(error, 'CHECKSUM_MISMATCH')
      log.forgetParts(row.id)
      parted.mismatches += 1
      if (!isMismatch || parted.mismatches > MAX_MISMATCHES) throw error
      this.#mismatches += 1
      this.#keptBytes -= row.size_bytes
      parted.finished.fill(undefined)
      parted.missing = parts.length
      for (const part of parts) this.#queue.push({ parted, part })
      return
    }
    chmodSync(object.path, 0o444)
    this.#finish(row, verifiedBy, null)
  }

  #finish(row: ObjectRow, verifiedBy: VerifiedBy, digest: string | null): void {
    this.finishedFiles += 1
    this.#options.log.finishObject(row.id, verifiedBy, digest)
    this.#options.onChange()
  }
}
