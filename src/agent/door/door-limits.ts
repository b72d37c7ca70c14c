import { DscError } from '../../failure/dsc-error.js'

/** What one user may have at once. Root, the service's own user and admins may have ten times as much. */
const LIMITS = { connections: 64, requests: 64, stagings: 16 } as const
const ADMIN_FACTOR = 10

type Kind = keyof typeof LIMITS

const WORDS: Readonly<Record<Kind, string>> = {
  connections: 'connections',
  requests: 'requests',
  stagings: 'datasets to prepare',
}

/** Counts what each user has at once, so that nobody takes the service from the others. */
export class DoorLimits {
  readonly #counts = new Map<string, number>()

  /** Takes one of the user's places, or returns undefined. Call the result once it is free again. */
  tryTake(kind: Kind, uid: number, isAdmin: boolean): (() => void) | undefined {
    const key = `${kind}:${uid}`
    const count = this.#counts.get(key) ?? 0
    if (count >= LIMITS[kind] * (isAdmin ? ADMIN_FACTOR : 1)) return undefined
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
  take(kind: Kind, uid: number, isAdmin: boolean): () => void {
    const free = this.tryTake(kind, uid, isAdmin)
    if (free) return free
    throw new DscError(
      'TOO_MANY_REQUESTS',
      `this user has ${LIMITS[kind] * (isAdmin ? ADMIN_FACTOR : 1)} ${WORDS[kind]} at the door of the service, and no more at once`,
      { hint: 'wait until some of them are done' },
    )
  }
}
