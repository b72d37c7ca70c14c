import type { Stripe } from './copy.js'
import type { Dataset } from './dataset.js'

/** One version of one dataset that a job used. */
export interface UsedVersion {
  readonly dataset: string
  /** Digest of the manifest, SHA-256, hexadecimal. */
  readonly version: string
  /** The source to list and refetch; null: it was on disk before dsc, from an unknown source. */
  readonly source: Dataset | null
  readonly files: number
  readonly contentBytes: number
  readonly stripe?: Stripe | undefined
  /** The nodes where the job used it, in order of first use. */
  readonly nodes: readonly string[]
  readonly firstUsedAtMs: number
  readonly lastUsedAtMs: number
}

/** The dataset versions that a job used. */
export interface Receipt {
  readonly task: string
  readonly parties: readonly string[]
  /** In order of first use. */
  readonly used: readonly UsedVersion[]
}
