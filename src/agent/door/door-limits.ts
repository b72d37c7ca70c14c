import type { Cache } from '../../cache/cache.js'
import { readLeasePages } from '../../cache/status/record-pages.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'

/** Limits of one user at one time. */
const AT_ONCE = { connections: 64, requests: 64, stagings: 16, upkeep: 1 } as const
/**
 * Users without more room that verify at one time, all together: it costs the service as much as a download, and
 * anybody may have thousands of uids.
 */
const OTHERS_UPKEEP = 4
const MAX_LEASES = 1000
/** Changes of one user, which the history keeps: at first so many, then so many each second. */
const CHANGES = { burst: 100, perSecond: 20 } as const
/** Root, the service's own user and admins may have ten times as much: a prolog asks for all jobs of a node. */
const ADMIN_FACTOR = 10
/** More users than this are forgotten at once: anybody may have thousands of uids in a user namespace. */
const MAX_KEPT = 10_000

type Kind = keyof typeof AT_ONCE

const WORDS: Readonly<Record<Kind, readonly [one: string, many: string]>> = {
  connections: ['connection', 'connections'],
  requests: ['request', 'requests'],
  stagings: ['dataset to prepare', 'datasets to prepare'],
  upkeep: ['verification or cleanup', 'verifications or cleanups'],
}

/** A user, and whether they have more room. */
interface User {
  readonly uid: number
  readonly isAdmin: boolean
}

/** Counts what each user has and does, so that nobody takes the service, or its record, from the others. */
export class DoorLimits {
  readonly #nowMs: () => number
  readonly #counts = new Map<string, number>()
  readonly #changes = new Map<number, { left: number; atMs: number }>()
  readonly #leases = new Map<number, Set<string>>()

  /** `nowMs`: a clock that only goes on. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Takes one of the user's places, or returns undefined. Call the result once it is free again. */
  tryTake(kind: Kind, user: User): (() => void) | undefined {
    const own = this.#count(`${kind}:${user.uid}`, AT_ONCE[kind] * factorOf(user))
    if (own === undefined || kind !== 'upkeep' || user.isAdmin) return own
    const shared = this.#count('upkeep', OTHERS_UPKEEP)
    if (shared === undefined) own()
    return (
      shared &&
      (() => {
        own()
        shared()
      })
    )
  }

  /** Takes one of `most` places under a key. */
  #count(key: string, most: number): (() => void) | undefined {
    const count = this.#counts.get(key) ?? 0
    if (count >= most) return undefined
    this.#counts.set(key, count + 1)
    let isFree = false
    return () => {
      if (isFree) return
      isFree = true
      const left = this.#counts.get(key)! - 1
      if (left > 0) this.#counts.set(key, left)
      else this.#counts.delete(key)
    }
  }

  /** The same, but throws TOO_MANY_REQUESTS. */
  take(kind: Kind, user: User): () => void {
    const free = this.tryTake(kind, user)
    if (free) return free
    const own = formatCount(AT_ONCE[kind] * factorOf(user), ...WORDS[kind])
    const isShared = kind === 'upkeep' && !user.isAdmin
    throw tooMany(`${own} at once${isShared ? `, and all users together ${OTHERS_UPKEEP}` : ''}`)
  }

  /** Counts a change. Throws TOO_MANY_REQUESTS if the user makes too many in a short time. */
  countChange(user: User): void {
    const nowMs = this.#nowMs()
    const { burst, perSecond } = CHANGES
    const most = burst * factorOf(user)
    const { left, atMs } = this.#changes.get(user.uid) ?? { left: most, atMs: nowMs }
    const now = Math.min(most, left + ((nowMs - atMs) / 1000) * perSecond * factorOf(user))
    if (now < 1) throw tooMany(`${perSecond * factorOf(user)} changes a second`)
    if (this.#changes.size >= MAX_KEPT) this.#changes.clear()
    this.#changes.set(user.uid, { left: now - 1, atMs: nowMs })
  }

  /** Throws TOO_MANY_REQUESTS if the user has a thousand leases on this node, or on others by this service. */
  async requireLease(user: User, cache: Cache): Promise<void> {
    const most = MAX_LEASES * factorOf(user)
    const granted = this.#leases.get(user.uid)
    if (granted === undefined || granted.size < most) return
    const held = new Set<string>()
    for await (const page of readLeasePages(cache.record, {}))
      for (const { leaseId, holder, node } of page)
        if (holder.userId === user.uid && (node === cache.node || granted.has(leaseId))) held.add(leaseId)
    this.#leases.set(user.uid, held)
    if (held.size >= most) throw tooMany(`${most} leases`)
  }

  /** Remembers a lease that was granted: the record is asked only once they seem to be too many. */
  addLease({ uid }: User, leaseId: string): void {
    if (this.#leases.size >= MAX_KEPT) this.#leases.clear()
    const held = this.#leases.get(uid) ?? new Set()
    this.#leases.set(uid, held.add(leaseId))
  }
}

function factorOf({ isAdmin }: User): number {
  return isAdmin ? ADMIN_FACTOR : 1
}

function tooMany(limit: string): DscError {
  return new DscError('TOO_MANY_REQUESTS', `the service allows each user ${limit}`, {
    hint: 'wait until some of them are done: dsc leases',
  })
}
