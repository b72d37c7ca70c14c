import type { Copy } from '../model/copy.js'
import type { CachePolicy, DiskUsage, Share } from '../model/policy.js'
import type { CopySum } from './copy-sums.js'
import { type CacheLoad, quotaBytes } from './quota.js'

/** The size of a share of a node, and how much of it is used. */
export interface ShareStanding {
  /** `user:alice`, `group:vision`, `account:nlp`; null = everybody without a share, who has no guarantee. */
  readonly party: string | null
  /** Percentage of the space for copies on this node, 0 to 100. */
  readonly percent: number
  readonly guaranteedBytes: number
  /** Part of `maxDatasets`; null = no such limit. */
  readonly guaranteedDatasets: number | null
  readonly usedBytes: number
  readonly usedDatasets: number
  /** Bytes used beyond its guarantee, out of what others leave unused. */
  readonly borrowedBytes: number
}

/** The share that a task's copies count for: the first of its parties in the order of the policy. Null: none. */
export function findShare(
  shares: readonly Share[] | undefined,
  parties: readonly string[] | undefined,
): string | null {
  return shares?.find(({ party }) => parties?.includes(party))?.party ?? null
}

/**
 * The total that copies may take on the node: `maxPercent` of the disk but no more than the disk has besides `minFree`
 * and the files of others, and `maxDatasets`; minus what belongs to no share and no eviction may take (locked, adopted
 * without a source). Shares are percentages of it, so that all of them can be used at once.
 */
function measureShareable(policy: CachePolicy, disk: DiskUsage, { sums, load }: Held): Used {
  const fixed = sums.filter(
    ({ parties, state, isLocked, hasSource }) =>
      findShare(policy.shares, parties) === null && state === 'ready' && (isLocked || !hasSource),
  )
  const fixedBytes = fixed.reduce((total, { chargedBytes }) => total + chargedBytes, 0)
  const fixedCopies = fixed.reduce((total, { copies }) => total + copies, 0)
  const writtenBytes = load.bytes - load.outstandingBytes
  const diskBytes = disk.freeBytes + writtenBytes - (policy.minFreeBytes ?? 0)
  const { maxDatasets = Number.POSITIVE_INFINITY } = policy
  return {
    bytes: Math.max(0, Math.min(quotaBytes(policy, disk), diskBytes) - fixedBytes),
    datasets: Math.max(0, maxDatasets - fixedCopies),
  }
}

/** Copies of one node, and their totals. */
export interface Held {
  readonly sums: readonly CopySum[]
  readonly load: CacheLoad
}

interface Used {
  bytes: number
  datasets: number
}

/** Tracks how much of a node each share takes, while copies leave it one by one. */
export class ShareLedger {
  readonly #policy: CachePolicy
  readonly #shareable: Used
  readonly #used = new Map<string | null, Used>()

  /** `load` is the load of `sums`. */
  constructor(policy: CachePolicy, disk: DiskUsage, held: Held) {
    this.#policy = policy
    this.#shareable = measureShareable(policy, disk, held)
    for (const sum of held.sums) if (sum.state !== 'reserved') this.#add(sum, sum.copies, sum.chargedBytes)
  }

  shareOf({ parties }: Pick<Copy, 'parties'>): string | null {
    return findShare(this.#policy.shares, parties)
  }

  /**
   * Whether the share takes more than its guarantee, in bytes or in datasets. Parties without a share always borrow.
   */
  isBorrower(party: string | null): boolean {
    if (party === null) return true
    const { bytes, datasets } = this.#usedBy(party)
    const guaranteed = this.#guaranteeOf(party)
    return bytes > guaranteed.bytes || datasets > guaranteed.datasets
  }

  remove(copy: Copy): void {
    this.#add(copy, -1, -copy.chargedBytes)
  }

  /** Every share in the order of the policy, then everybody else. */
  list(): readonly ShareStanding[] {
    const parties = [...(this.#policy.shares ?? []).map(({ party }) => party), null]
    return parties.map((party) => {
      const used = this.#usedBy(party)
      const guaranteed = this.#guaranteeOf(party)
      return {
        party,
        percent: this.#percentOf(party),
        guaranteedBytes: guaranteed.bytes,
        guaranteedDatasets: Number.isFinite(guaranteed.datasets) ? guaranteed.datasets : null,
        usedBytes: used.bytes,
        usedDatasets: used.datasets,
        borrowedBytes: Math.max(0, used.bytes - guaranteed.bytes),
      }
    })
  }

  #usedBy(party: string | null): Used {
    return this.#used.get(party) ?? { bytes: 0, datasets: 0 }
  }

  #percentOf(party: string | null): number {
    return this.#policy.shares?.find((share) => share.party === party)?.percent ?? 0
  }

  #guaranteeOf(party: string | null): Used {
    if (party === null) return { bytes: 0, datasets: 0 }
    const fraction = this.#percentOf(party) / 100
    const { bytes, datasets } = this.#shareable
    return { bytes: Math.floor(bytes * fraction), datasets: Math.floor(datasets * fraction + 1e-9) }
  }

  #add(of: Pick<Copy, 'parties'>, datasets: number, bytes: number): void {
    const party = this.shareOf(of)
    const used = this.#usedBy(party)
    this.#used.set(party, { bytes: used.bytes + bytes, datasets: used.datasets + datasets })
  }
}

/** The state of a node's shares. Empty if the policy has none. */
export function measureShares(policy: CachePolicy, disk: DiskUsage, held: Held): readonly ShareStanding[] {
  return policy.shares === undefined ? [] : new ShareLedger(policy, disk, held).list()
}
