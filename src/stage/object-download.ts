import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { isDscError } from '../failure/dsc-error.js'
import type { VerifiedBy } from '../model/manifest.js'
import { filesDirectory } from './cache-layout.js'

import type { ObjectRow } from './object-row.js'
import type { ObjectFacts } from './plan/object-facts.js'
import { type BandwidthState, takeBandwidth } from './plan/plan-bandwidth.js'
import {
  countUploadParts,
  guessUploadPartBytes,
  type Part,
  planPartBytes,
  planParts,
} from './plan/plan-parts.js'
import { type Proof, planProof } from './plan/plan-proof.js'
import type { ProgressLog } from './progress-log.js'
import { withRetries } from './retry.js'
import type { Fetcher } from './source.js'
import { preallocate } from './transfer/file-sink.js'
import { proveByUploadParts } from './transfer/prove-by-upload-parts.js'
import { type FinishedPart, proveParts } from './transfer/prove-parts.js'
import { type TransferObject, transferPart, transferWhole } from './transfer/transfer.js'

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
  readonly fetcher: Fetcher
  readonly copyDirectory: string
  readonly stallTimeoutMs: number
  readonly signal: AbortSignal
  readonly onChange: () => void
  readonly bandwidthLimit?: (() => number) | undefined
}

const MAX_MISMATCHES = 2

/** Fetches objects one by one and remembers in the manifest what is finished. */
export class ObjectDownload {
  fetchedBytes = 0
  finishedFiles = 0
  retries = 0
  /** Bytes in place or arriving; an attempt that fails takes its bytes back. */
  presentBytes = 0
  readonly #options: ObjectDownloadOptions
  readonly #bandwidth: BandwidthState = { paidAtMs: 0 }
  readonly #queue: { readonly parted: PartedObject; readonly part: Part }[] = []

  constructor(options: ObjectDownloadOptions) {
    this.#options = options
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
      path: join(filesDirectory(this.#options.copyDirectory), row.key),
    }
    if (planPartBytes(row.size_bytes, null) < row.size_bytes) return this.#beginParts(row, object)
    const { digest, verifiedBy } = await this.#fetchWhole(object)
    this.fetchedBytes += row.size_bytes
    this.#finish(row, verifiedBy, digest)
  }

  async #fetchWhole(object: TransferObject) {
    for (let mismatches = 0; ; mismatches += 1) {
      const whole = await this.#attempt((limits) => transferWhole(this.#options.fetcher, object, limits))
      if (whole.verifiedBy !== 'size' || countUploadParts(object.etag) < 2) return whole
      // Uploaded in parts although it is small: the source is asked for their size, and the file read by them.
      const facts = await this.#inspect(object)
      try {
        return { ...whole, verifiedBy: await proveByUploadParts(object, facts, this.#options.signal) }
      } catch (error) {
        if (!isDscError(error, 'CHECKSUM_MISMATCH') || mismatches === MAX_MISMATCHES) throw error
        this.retries += 1
        this.presentBytes -= object.sizeBytes
      }
    }
  }

  async #inspect(object: TransferObject): Promise<ObjectFacts> {
    const facts = await this.#attempt((limits) => this.#options.fetcher.inspect({ ...object, ...limits }))
    const uploadParts = countUploadParts(object.etag)
    if (facts.uploadPartBytes !== null || uploadParts < 2) return facts
    const uploadPartBytes = guessUploadPartBytes(object.sizeBytes, uploadParts)
    return { ...facts, uploadPartBytes, isPartSizeGuessed: true }
  }

  async #beginParts(row: ObjectRow, object: TransferObject): Promise<void> {
    const { db, log } = this.#options
    const facts = row.facts ? (JSON.parse(row.facts) as ObjectFacts) : await this.#inspect(object)
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
    for (const part of parts) if (finished[part.number]) this.presentBytes += part.length
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
    const finished = await this.#attempt((limits) =>
      transferPart(this.#options.fetcher, parted.object, part, { ...limits, proofAlgorithm }),
    )
    this.fetchedBytes += part.length
    parted.finished[part.number] = finished
    this.#options.log.finishPart(parted.row.id, part.number, finished)
    parted.missing -= 1
    if (parted.missing === 0) await this.#proveParts(parted)
  }

  async #proveParts(parted: PartedObject): Promise<void> {
    const { row, object, parts, proof } = parted
    const { log, signal } = this.#options
    let verifiedBy: VerifiedBy
    try {
      const finished = parted.finished as FinishedPart[]
      verifiedBy = await proveParts({ key: row.key, path: object.path, proof, parts, finished, signal })
    } catch (error) {
      // Which part is wrong cannot be told, so all of them are fetched again.
      const isMismatch = isDscError(error, 'CHECKSUM_MISMATCH')
      log.forgetParts(row.id)
      parted.mismatches += 1
      if (!isMismatch || parted.mismatches > MAX_MISMATCHES) throw error
      this.retries += 1
      this.presentBytes -= row.size_bytes
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

  #attempt<Value>(
    attempt: (limits: {
      readonly stallTimeoutMs: number
      readonly signal: AbortSignal
      readonly onBytes: (bytes: number) => number
    }) => Promise<Value>,
  ): Promise<Value> {
    const { stallTimeoutMs, signal, onChange, bandwidthLimit } = this.#options
    return withRetries(
      async () => {
        let receivedBytes = 0
        const onBytes = (bytes: number) => {
          receivedBytes += bytes
          this.presentBytes += bytes
          onChange()
          return bandwidthLimit === undefined
            ? 0
            : takeBandwidth(this.#bandwidth, bytes, {
                bytesPerSecond: bandwidthLimit(),
                nowMs: performance.now(),
              })
        }
        try {
          return await attempt({ stallTimeoutMs, signal, onBytes })
        } catch (error) {
          this.presentBytes -= receivedBytes
          throw error
        }
      },
      {
        signal,
        onRetry: () => {
          this.retries += 1
        },
      },
    )
  }
}
