import type { Dataset } from './dataset.js'
import { SOURCE_SCHEMES } from './source-url.js'

/**
 * `reserved`: one stager owns the name and lists the source; nothing is charged yet.
 * `staging`: admitted, its bytes and its slot are charged. `ready`: published. `evicting`: being deleted.
 */
export type CopyState = 'reserved' | 'staging' | 'ready' | 'evicting'

/** Possible sources of a copy's bytes. `local`: they were on disk before dsc (adopted). */
export const COPY_ORIGINS = [...SOURCE_SCHEMES, 'peer', 'local'] as const

/** Where the bytes of a copy came from. */
export type CopyOrigin = (typeof COPY_ORIGINS)[number]

/** An operator's "never evict this". */
export interface CopyLock {
  readonly by: string
  readonly reason: string
  readonly atMs: number
}

/** One version of a dataset on one node. */
export interface Copy {
  readonly copyId: string
  readonly dataset: string
  readonly node: string
  /** Digest of the manifest, lower-case hex; null until the source is listed. */
  readonly version: string | null
  readonly state: CopyState
  readonly origin: CopyOrigin
  /** The definition to refetch from; null if no remote source is known (adopted). */
  readonly source: Dataset | null
  /** Absolute path of the copy's directory on its node; contains `manifest.db` and `files/`. */
  readonly directory: string
  /** Absolute path that jobs read. */
  readonly path: string
  /** Bytes of disk charged to the quota: the reservation while staging, blocks on disk once ready. */
  readonly chargedBytes: number
  readonly chargedInodes: number
  /** Bytes of the reservation that are already on disk. */
  readonly writtenBytes: number
  readonly files: number
  /** Sum of the objects' sizes. */
  readonly contentBytes: number
  readonly lock: CopyLock | null
  readonly lastTask: string | null
  /** Unix epoch in ms; stamped on publishing and at every lease. Orders evictions. */
  readonly lastUsedAtMs: number
  readonly createdAtMs: number
  readonly readyAtMs: number | null
  /** The parties of the task that used it last: the copy counts for their share. Absent: unknown. */
  readonly parties?: readonly string[] | undefined
  /** Absent: the copy has every object of the version. */
  readonly stripe?: Stripe | undefined
  /** Of a whole copy: the node lists of layouts in which it stands for a stripe and which have no stripe left. */
  readonly layouts?: readonly (readonly string[])[] | undefined
}

/** A copy's part of a version: object i, in the order of keys, where i mod `nodes.length` is `index`. */
export interface Stripe {
  /** From 0. */
  readonly index: number
  /** The nodes of all stripes, in order; 1 to 1000. */
  readonly nodes: readonly string[]
}

/** More stripes than this are a mistake. */
const MAX_STRIPES = 1000

/** Checks a stripe from an external source. Throws a RangeError with what was expected and found. */
export function parseStripe(raw: unknown): Stripe {
  const { index, nodes } = (raw ?? {}) as Partial<Stripe>
  const isList = Array.isArray(nodes) && nodes.every((node) => typeof node === 'string' && node !== '')
  if (isList && new Set(nodes).size === nodes.length && nodes.length <= MAX_STRIPES) {
    if (Number.isInteger(index) && index! >= 0 && index! < nodes.length) return { index: index!, nodes }
  }
  throw new RangeError(
    `expected a stripe of 1 to ${MAX_STRIPES} different nodes, found ${JSON.stringify(raw).slice(0, 200)}`,
  )
}

/** `2/3`: the second of three stripes. */
export function formatStripe(stripe: Stripe): string {
  return `${stripe.index + 1}/${stripe.nodes.length}`
}

/** A copy with its leases: how an eviction or a status sees it. */
export interface CopyUse extends Copy {
  /** Live `use` and `transfer` leases. */
  readonly referenceCount: number
  /** Whether it has a live `stage` lease, so that a stager is working on it. */
  readonly isBeingStaged: boolean
}
