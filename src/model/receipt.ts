import type { Copy } from './copy.js'

/** One version of one dataset that a job used. */
export interface UsedVersion
  extends Pick<Copy, 'dataset' | 'source' | 'files' | 'contentBytes' | 'stripe' | 'lastUsedAtMs'> {
  /** Digest of the manifest, SHA-256, hexadecimal. */
  readonly version: string
  /** The nodes where the job used it, in order of first use. */
  readonly nodes: readonly string[]
  readonly firstUsedAtMs: number
}

/** The dataset versions that a job used. */
export interface Receipt {
  readonly task: string
  readonly parties: readonly string[]
  /** In order of first use. */
  readonly used: readonly UsedVersion[]
}
