import { isDeepStrictEqual } from 'node:util'
import { findPeers, MAX_PEERS, type PeerCopy, type PeerSearch } from './find-peers.js'
import { findStagers } from './find-stagers.js'
import type { Providers, Stager } from './plan-providers.js'

/** How long after each look the next one follows, ms: nodes that begin together find each other early. */
const LOOK_AGAIN_MS = [250, 500, 1000, 1000, 1000, 1000, 1000, 1000, 2000, 5000]

/** So many that stage together may all look at this pace: what each reads grows with their number. */
const STAGERS_AT_THIS_PACE = 100
/** Above 1, so that what all of them read grows less than their number: 1,024 looks take a database 40 s. */
const PACE_EXPONENT = 1.5

/** How long after its look number `looks`, counted from 0, a node looks again, ms. */
export function planNextLook(looks: number, stagers: number): number {
  const paceMs = LOOK_AGAIN_MS[Math.min(looks, LOOK_AGAIN_MS.length - 1)]!
  return paceMs * Math.max(1, stagers / STAGERS_AT_THIS_PACE) ** PACE_EXPONENT
}

/** The nodes that a dataset can be taken from: found in the record, and looked for again while it is staged. */
export class Neighbours {
  readonly #search: PeerSearch
  readonly #invited: readonly Stager[]
  #ready: readonly PeerCopy[]
  #stagers: readonly Stager[] = []
  /** What is told of them until the next look. */
  #providers: Providers | undefined
  /** Nodes that were found staging at some time. */
  readonly #seen = new Set<string>()
  #looks = 0
  #timer: NodeJS.Timeout | undefined
  /** Those who want to know of the next look. */
  #waiting: (() => void)[] = []
  #isClosed = false

  /** `ready`: what was found at first; `invited`: nodes that were told to stage together with this one. */
  constructor(
    search: PeerSearch,
    found: { readonly ready: readonly PeerCopy[]; readonly invited: readonly Stager[] },
  ) {
    this.#search = search
    this.#ready = found.ready
    this.#invited = found.invited
  }

  /** Looks now, and again and again until it is closed. */
  async watch(): Promise<void> {
    await this.#look()
    if (this.#isClosed) return
    const afterMs = planNextLook(this.#looks, this.#stagers.length)
    this.#looks += 1
    this.#timer = setTimeout(() => void this.watch(), afterMs).unref()
  }

  /** Who they are, as far as is known: asked for every part. */
  get providers(): Providers {
    this.#providers ??= this.#describe()
    return this.#providers
  }

  /** Resolves with who they are once that is something else than `known`. */
  async changedFrom(known: Providers): Promise<Providers> {
    while (isDeepStrictEqual(this.providers, known))
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.providers
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #describe(): Providers {
    const invited = this.#invited.filter(({ node }) => !this.#seen.has(node)) // they will begin
    const ready = this.#ready.map(({ node, url, copy }) => ({ node, url, copyId: copy.copyId }))
    // Whoever is done keeps its place in the order: the others go on taking parts from each other, not all from it.
    const done = ready
      .filter(({ node }) => this.#seen.has(node))
      .map((provider): Stager => ({ ...provider, isStaging: true, mayHave: true }))
    const stagers = new Map([...invited, ...done, ...this.#stagers].map((stager) => [stager.node, stager]))
    return { ready: ready.slice(0, MAX_PEERS), stagers: [...stagers.values()] }
  }

  async #look(): Promise<void> {
    try {
      const invited = new Set(this.#invited.map(({ node }) => node))
      const [ready, stagers] = await Promise.all([
        findPeers(this.#search),
        findStagers(this.#search, invited),
      ])
      if (ready.length > 0) this.#ready = ready
      this.#stagers = stagers
      for (const { node } of stagers) this.#seen.add(node)
      this.#providers = undefined
      for (const resolve of this.#waiting.splice(0)) resolve()
    } catch {
      // The record is away: whoever was known is asked.
    }
  }
}
