import { SourceFailure } from '../../failure/source-failure.js'
import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { ProgressLog } from '../../manifest/progress-log.js'
import type { VerifiedBy } from '../../model/manifest.js'
import { PAGE_BYTES } from '../../platform/page-bytes.js'
import { type Part, planPartBytes, planParts } from '../../proof/plan-parts.js'
import { type Proof, type ProofAlgorithm, planProof } from '../../proof/plan-proof.js'
import type { FinishedPart } from '../../proof/prove-parts.js'
import { isTold } from '../../sources/untold-etag.js'
import { BlockSet, type ByteRange, planBlockBytes } from '../arrivals/block-set.js'
import { mayBelieveFiles } from './recheck.js'
import type { TransferObject } from './transfer/arriving-range.js'
import { preallocate } from './transfer/file-sink.js'
import type { TransferEngine } from './transfer/transfer-task.js'
import { findWrittenBeginning, findWrittenRuns } from './written-runs.js'

/** Bytes to fetch in one request: a part, or a range of one. */
export interface Portion extends ByteRange {
  readonly part: Part
  /** Whether the whole part is already under way and these bytes of it are wanted sooner. */
  readonly isExtra: boolean
}

/** A range and the CRC-32 of the bytes received for it. */
interface RangeDigest extends ByteRange {
  readonly digest: string
}

/** An object that arrives in parts; within each part, ranges that a reader needs come first. */
export class PartedObject {
  readonly entry: ManifestEntry
  readonly object: TransferObject
  readonly parts: readonly Part[]
  readonly proof: Proof
  readonly finished: (FinishedPart | undefined)[]
  /** Blocks that the file holds. */
  readonly there: BlockSet
  /** Number of times that the whole object was fetched and found wrong. */
  mismatches = 0
  /** Blocks that are there or under way. */
  readonly #taken: BlockSet
  /** Parts under way in one piece, by number. */
  readonly #coming = new Set<number>()
  /** Blocks requested a second time. */
  readonly #extra: BlockSet
  /** For each part with such blocks: the number of requests for them under way, and the ranges received. */
  readonly #extras = new Map<number, { underWay: number; readonly came: RangeDigest[] }>()
  /** Parts being digested, by number. */
  readonly #digesting = new Set<number>()
  #isProving = false
  /** The digests with which all parts came last, and how many times in a row. */
  #came = { digests: '', times: 0 }

  constructor(options: {
    readonly entry: ManifestEntry
    readonly object: TransferObject
    readonly parts: readonly Part[]
    readonly proof: Proof
    readonly finished: (FinishedPart | undefined)[]
    /** Blocks left by an earlier attempt. */
    readonly bits: Uint8Array | undefined
    readonly blockBytes: number
  }) {
    const { entry, parts, finished, bits, blockBytes } = options
    this.entry = entry
    this.object = options.object
    this.parts = parts
    this.proof = options.proof
    this.finished = finished
    this.there = new BlockSet(entry.sizeBytes, blockBytes, bits)
    for (const part of parts) if (finished[part.number]) this.there.add(part)
    this.#taken = new BlockSet(entry.sizeBytes, blockBytes, this.there.bits)
    this.#extra = new BlockSet(entry.sizeBytes, blockBytes)
  }

  get missingParts(): readonly Part[] {
    return this.parts.filter(({ number }) => !this.finished[number])
  }

  /**
   * Algorithm that verifies parts; undefined if only a digest of the whole does, in order, which needs a second read.
   */
  get proofAlgorithm(): ProofAlgorithm | undefined {
    const { proof } = this
    return proof.kind === 'combine' || proof.kind === 'digest-of-digests' ? proof.algorithm : undefined
  }

  /** Whether only the digest given by a part's sender can verify it. */
  get needsDigest(): boolean {
    const { proof } = this
    return proof.kind === 'size' || (proof.kind === 'digest-of-digests' && !proof.isCertain)
  }

  /** Takes the first bytes of the range that are not under way yet; undefined if all are. */
  take(range: ByteRange): Portion | undefined {
    const run = this.#taken.missing(range).next().value
    if (run === undefined) return undefined
    const portion = this.#cut(run)
    this.#taken.add(portion)
    if (portion.length === portion.part.length) this.#coming.add(portion.part.number)
    return { ...portion, isExtra: false }
  }

  /**
   * Like `take`, for a range that a reader waits for: if its bytes are far back in a part that is under way, they are
   * requested once more, alone.
   */
  takeWanted(range: ByteRange): Portion | undefined {
    const taken = this.take(range)
    if (taken) return taken
    for (const run of this.there.missing(range)) {
      const { part, ...rest } = this.#cut(run)
      const extra = this.#coming.has(part.number) ? this.#extra.missing(rest).next().value : undefined
      if (extra === undefined || extra.length === part.length) continue
      this.#extra.add(extra)
      const extras = this.#extras.get(part.number) ?? { underWay: 0, came: [] }
      extras.underWay += 1
      this.#extras.set(part.number, extras)
      return { ...extra, part, isExtra: true }
    }
    return undefined
  }

  /** Rejects parts of other nodes that the source's checksum, of upload parts of a guessed size, did not verify. */
  refuseHearsay(verifiedBy: VerifiedBy): void {
    const isFromNodes = this.finished.some((part) => part?.isHearsay === true)
    if (!isFromNodes || verifiedBy !== 'own-sha256' || this.proof.kind === 'size') return
    const problem = `${JSON.stringify(this.entry.key)}: other nodes sent it, and its etag does not verify it`
    const hint = 'run dsc verify on these nodes'
    throw new SourceFailure('CHECKSUM_MISMATCH', problem, { isTransient: true, hint })
  }

  /** Notes bytes that a killed attempt left in the file. */
  left(range: ByteRange): void {
    this.there.add(range)
    this.#taken.add(range)
  }

  /** Whether all bytes of the part before the portion are in the file. */
  isInOrder({ part, offset }: Portion): boolean {
    return this.there.has({ offset: part.offset, length: offset - part.offset })
  }

  /** Notes that the bytes are in the file; `digest`: of a range, as received. */
  wrote({ part, offset, length, isExtra }: Portion, digest: string): void {
    this.there.add({ offset, length })
    const extras = isExtra ? this.#extras.get(part.number) : undefined
    if (extras) {
      extras.underWay -= 1
      extras.came.push({ offset, length, digest })
    } else if (length === part.length) this.#coming.delete(part.number)
  }

  /**
   * Ranges that readers got from a part while all of it was under way. Their bytes were written twice, so the digest
   * made on arrival may differ from the file.
   */
  extrasOf({ number }: Part): readonly RangeDigest[] {
    return this.#extras.get(number)?.came ?? []
  }

  hasExtras({ number }: Part): boolean {
    return this.#extras.has(number)
  }

  /** True once, when all parts are finished: the whole can be verified. */
  takeProof(): boolean {
    if (this.#isProving || this.missingParts.length > 0) return false
    this.#isProving = true
    return true
  }

  /** True once, when all of a part that arrived in ranges is there: it can be digested. */
  takeWritten({ number, offset, length }: Part): boolean {
    if (this.finished[number] || this.#digesting.has(number) || this.#coming.has(number)) return false
    if ((this.#extras.get(number)?.underWay ?? 0) > 0 || !this.there.has({ offset, length })) return false
    this.#digesting.add(number)
    return true
  }

  /** Counts how many times in a row all parts came with the same bytes; call once they are finished. */
  countSame(): number {
    const digests = this.finished.map((part) => part?.digest).join()
    this.#came = { digests, times: digests === this.#came.digests ? this.#came.times + 1 : 1 }
    return this.#came.times
  }

  /** The beginning of a run, up to the end of its first part. */
  #cut({ offset, length }: ByteRange): ByteRange & { readonly part: Part } {
    const part = this.parts[Math.floor(offset / this.parts[0]!.length)]!
    return { part, offset, length: Math.min(length, part.offset + part.length - offset) }
  }

  /** Resets everything for a new download. */
  restart(): void {
    this.finished.fill(undefined)
    this.#digesting.clear()
    this.#extras.clear()
    this.#extra.clear()
    this.there.clear()
    this.#taken.clear()
    this.#isProving = false
  }
}

/**
 * Whether a file may be written past the page cache: it needs no second read to verify it, which would come from the
 * disk, and no two of its parts share a page.
 */
function mayBeDirect(proof: Proof, partBytes: number): boolean {
  return proof.kind !== 'whole' && partBytes % PAGE_BYTES === 0
}

/** Plans an object's parts, or resumes those that an earlier attempt planned, and allocates its file. */
export async function openPartedObject(
  staging: {
    readonly manifest: Manifest
    readonly log: ProgressLog
    readonly engine: TransferEngine
    /** Part size, unless the parts of its upload suit. */
    readonly partBytes: number | undefined
    /** Other nodes may have sent bytes. */
    readonly hasNodes: boolean
    /** Whether a file that begins now should be written past the page cache. */
    readonly isDirect: () => boolean
    readonly signal: AbortSignal
  },
  entry: ManifestEntry,
  object: TransferObject,
): Promise<PartedObject> {
  const { manifest, log, engine } = staging
  const { id, sizeBytes, etag } = entry
  const facts = entry.facts ?? (await engine.run({ kind: 'inspect', object }))
  const ignoresRanges = facts.ignoresRanges === true
  const planned = ignoresRanges
    ? sizeBytes
    : planPartBytes(sizeBytes, facts.uploadPartBytes, staging.partBytes)
  const partBytes = entry.partBytes ?? planned
  if (entry.partBytes === null) log.planObject(id, partBytes, facts)
  const parts = planParts(sizeBytes, partBytes)
  const known = manifest.parts.of(id)
  const finished = parts.map(({ number }) => known.get(number))
  const isLeft = preallocate(object.path, sizeBytes)
  const proof = planProof({ sizeBytes, etag, partBytes, facts })
  const bits = manifest.blocks.find(id)
  const blockBytes = planBlockBytes({ sizeBytes, partBytes, ignoresRanges })
  // All of a file is written in one way: the kernel fails the next sync if both ways meet in a page.
  const isDirect = mayBeDirect(proof, partBytes) && staging.isDirect()
  const parted = new PartedObject({
    entry,
    object: { ...object, isDirect },
    parts,
    proof,
    finished,
    bits,
    blockBytes,
  })
  // Without an etag the left bytes may be of an earlier version; without a checksum, of a node that errs or lies.
  const isUnproven = parted.needsDigest
  const mayBelieve = isTold(etag) && mayBelieveFiles(manifest) && !(isUnproven && staging.hasNodes)
  if (isLeft && mayBelieve && blockBytes < partBytes) {
    const find = manifest.readSetting('out_of_order') === undefined ? findWrittenBeginning : findWrittenRuns
    for (const part of parted.missingParts)
      for (const run of await find(object.path, part, { isUnproven, signal: staging.signal }))
        parted.left(run)
  }
  return parted
}
