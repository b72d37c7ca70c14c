import type { VerifiedBy } from '../../../model/manifest.js'
import type { Urgency } from '../../../model/urgency.js'
import type { ObjectFacts } from '../../../proof/object-facts.js'
import type { Part } from '../../../proof/plan-parts.js'
import type { Proof, ProofAlgorithm } from '../../../proof/plan-proof.js'
import type { FinishedPart } from '../../../proof/prove-parts.js'
import type { ByteRange } from '../../arrivals/block-set.js'
import type { TransferObject } from './arriving-range.js'

/** Work on one object, as plain data, so that any thread can do it. */
export type TransferTask =
  | {
      readonly kind: 'whole'
      readonly object: TransferObject
      readonly urgency: Urgency
      /**
       * An earlier run of this boot may have left its first bytes, from the source or, with `nodes`, from other nodes.
       * Absent: none that count.
       */
      readonly mayBeLeft?: 'source' | 'nodes'
    }
  | {
      readonly kind: 'part'
      readonly object: TransferObject
      readonly part: Part
      readonly proofAlgorithm: ProofAlgorithm | undefined
      /** The source gives nothing to verify the whole with. */
      readonly needsDigest: boolean
      /** The whole was fetched before and found wrong. */
      readonly isRepeated: boolean
      readonly urgency: Urgency
    }
  /** Fetches a range of a part into its file; the part is digested once it is complete. */
  | {
      readonly kind: 'range'
      readonly object: TransferObject
      readonly part: Part
      readonly range: ByteRange
      readonly needsDigest: boolean
      readonly isRepeated: boolean
      readonly urgency: Urgency
    }
  /** Digests a part, or a range of one, from the file. */
  | {
      readonly kind: 'digest'
      readonly object: TransferObject
      readonly part: ByteRange
      readonly proofAlgorithm: ProofAlgorithm | undefined
    }
  | { readonly kind: 'inspect'; readonly object: TransferObject }
  | {
      readonly kind: 'prove'
      readonly object: TransferObject
      readonly proof: Proof
      readonly parts: readonly Part[]
      readonly finished: readonly FinishedPart[]
      /** How many times in a row the same bytes came; 0 if the object is fetched once more after a mismatch. */
      readonly sameTimes: number
    }

/** Result of each kind of task. */
export interface TransferResults {
  readonly whole: {
    readonly digest: string
    readonly verifiedBy: VerifiedBy
    /** Bytes that were left by an earlier run. */
    readonly leftBytes: number
  }
  readonly part: FinishedPart
  /** Digest of the bytes received. */
  readonly range: string
  readonly digest: FinishedPart
  readonly inspect: ObjectFacts
  readonly prove: VerifiedBy
}

/** Totals over all tasks so far. */
export interface TransferCounts {
  /** Bytes received and kept: a failed attempt subtracts its bytes. */
  readonly receivedBytes: number
  /** Repeated attempts. */
  readonly retries: number
  /** Attempts that the source answered with a request to slow down. */
  readonly throttled: number
}

/** Runs transfer tasks, each with its retries. */
export interface TransferEngine {
  readonly counts: TransferCounts
  run<Kind extends TransferTask['kind']>(
    task: Extract<TransferTask, { kind: Kind }>,
  ): Promise<TransferResults[Kind]>
  /** A reader waits for an object, or a range of it: its running tasks become `wanted`. */
  hurry(key: string, range?: ByteRange): void
  close(): Promise<void>
}
