import type { Lease } from '../../model/lease.js'
import { listRunningPods } from '../../platform/pods.js'

/** A pod unseen for this long has ended. With a look every 30 s, its lease is gone within a minute. */
const GONE_AFTER_MS = 45_000

/** The pods of this node, as far as this process can see them. */
interface Sight {
  /** Pods with a process; undefined if processes of others cannot be seen. */
  readonly running: ReadonlySet<string> | undefined
  /** Pods with volumes; undefined if this agent mounts none. */
  readonly mounted: ReadonlySet<string> | undefined
}

/**
 * Tells which pods live, by two witnesses: their processes and their mounts. Only a witness that would see a pod judges
 * it: a lease without an end belongs to a volume, any other to a process that ran `dsc prepare` in the pod.
 */
export class PodSightings {
  /** Uid → when the pod was last seen, or first looked for. */
  readonly #seenAtMs = new Map<string, number>()
  readonly #listRunning: () => ReadonlySet<string> | undefined
  readonly #listMounted: () => ReadonlySet<string> | undefined
  #sight: Sight = { running: undefined, mounted: undefined }

  constructor(options: {
    readonly listMounted: () => ReadonlySet<string> | undefined
    readonly listRunning?: () => ReadonlySet<string> | undefined
  }) {
    this.#listMounted = options.listMounted
    this.#listRunning = options.listRunning ?? listRunningPods
  }

  /** Looks at the pods. */
  look(nowMs: number): void {
    this.#sight = { running: this.#listRunning(), mounted: this.#listMounted() }
    for (const uid of [...(this.#sight.running ?? []), ...(this.#sight.mounted ?? [])])
      this.#seenAtMs.set(uid, nowMs)
    for (const [uid, atMs] of this.#seenAtMs) if (nowMs - atMs > 2 * GONE_AFTER_MS) this.#seenAtMs.delete(uid)
  }

  /** Whether the pod of this lease lives, by the last look. `unknown`: no witness would see it, or not yet. */
  judge(
    { holder, expiresAtMs }: Pick<Lease, 'holder' | 'expiresAtMs'>,
    nowMs: number,
  ): 'alive' | 'gone' | 'unknown' {
    if (holder.kind !== 'pod') return 'unknown'
    const { running, mounted } = this.#sight
    if (running?.has(holder.uid) || mounted?.has(holder.uid)) return 'alive'
    const wouldSee = running !== undefined || (mounted !== undefined && expiresAtMs === null)
    if (!wouldSee) return 'unknown'
    const seenAtMs = this.#seenAtMs.get(holder.uid)
    // It may have begun after the last look, so its time runs from the first question about it.
    if (seenAtMs === undefined) this.#seenAtMs.set(holder.uid, nowMs)
    return seenAtMs !== undefined && nowMs - seenAtMs >= GONE_AFTER_MS ? 'gone' : 'unknown'
  }
}
