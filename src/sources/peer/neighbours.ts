import { isDeepStrictEqual } from 'node:util'
import { isSameDefinition } from '../../model/dataset.js'
import { agentUrls } from '../../model/node.js'
import { findPeers, MAX_PEERS, type PeerCopy, type PeerSearch } from './find-peers.js'
import { type KnownStaging, mayHave } from './may-have.js'
import type { Providers, Stager } from './plan-providers.js'

/** Delays between looks, in ms: nodes that begin together find each other early. */
const LOOK_AGAIN_MS = [250, 500, 1000, 1000, 1000, 1000, 1000, 1000, 2000, 5000]

/** Number of stagers up to which all may look at this pace: each look reads more as they grow in number. */
const STAGERS_AT_THIS_PACE = 100
/**
 * Above 1, so that the total that all of them read grows more slowly than their number: 1,024 looks take a database 40
 * s.
 */
const PACE_EXPONENT = 1.5

/** Delay before a node looks again after look number `looks`, counted from 0, in ms. */
export function planNextLook(looks: number, stagers: number): number {
  const paceMs = LOOK_AGAIN_MS[Math.min(looks, LOOK_AGAIN_MS.length - 1)]!
  return paceMs * Math.max(1, stagers / STAGERS_AT_THIS_PACE) ** PACE_EXPONENT
}

/** The nodes that can supply a dataset: found in the record, and looked for again during staging. */
export class Neighbours {
  readonly #search: PeerSearch
  readonly #invited: readonly Stager[]
  #ready: readonly PeerCopy[]
  #stagers: readonly Stager[] = []
  /** The description of them until the next look. */
  #providers: Providers | undefined
  /** Nodes that were seen staging at some point. */
  readonly #seen = new Set<string>()
  #looks = 0
  #timer: NodeJS.Timeout | undefined
  /** Callers waiting for the next look. */
  #waiting: (() => void)[] = []
  #isClosed = false

  /** `ready`: the copies found at first; `invited`: nodes told to stage together with this one. */
  constructor(
    search: PeerSearch,
    found: { readonly ready: readonly PeerCopy[]; readonly invited: readonly Stager[] },
  ) {
    this.#search = search
    this.#ready = found.ready
    this.#invited = found.invited
  }

  /** Looks now, and then repeatedly until closed. */
  async watch(): Promise<void> {
    await this.#look()
    if (this.#isClosed) return
    const afterMs = planNextLook(this.#looks, this.#stagers.length)
    this.#looks += 1
    this.#timer = setTimeout(() => void this.watch(), afterMs).unref()
  }

  /** The known providers: read for every part. */
  get providers(): Providers {
    this.#providers ??= this.#describe()
    return this.#providers
  }

  /** Resolves with the providers once they differ from `known`. */
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
    // A node that is done keeps its place in the order: the others go on taking parts from each other, not all from it.
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
      // The record is unreachable: the known nodes stay.
    }
  }
}

/**
 * Silence after which a stager is no longer waited for, in ms. A stager renews its lease every second; with all
 * processors busy renewals come 10 s late, and taking over its parts too early means reading the store once more.
 * Connections tell sooner whether the node is up at all.
 */
const SILENT_STAGER_MS = 30_000

/**
 * Finds the nodes with an agent that are staging whole copies of the dataset or have given up, including this node with
 * the URL `''` if others can reach it. `invited`: nodes told to begin together with it.
 */
async function findStagers(
  { record, node, dataset }: PeerSearch,
  invited: ReadonlySet<string>,
): Promise<readonly Stager[]> {
  const nowMs = record.nowMs()
  const copies = await record.listCopies({ dataset: dataset.name, states: ['reserved', 'staging'] }, nowMs)
  const staged = copies.filter(({ stripe, source }) => !stripe && source && isSameDefinition(source, dataset))
  if (staged.every((copy) => copy.node === node)) return []
  const leases = await record.listLeases({ dataset: dataset.name, purpose: 'stage' })
  const stagers = new Map(leases.map((lease) => [lease.copyId, lease]))
  const agents = agentUrls(await record.listNodes(), nowMs)
  const stagings = staged.map((copy): KnownStaging => {
    const stager = stagers.get(copy.copyId)
    const isStaging = stager !== undefined && nowMs - stager.renewedAtMs < SILENT_STAGER_MS
    return { node: copy.node, createdAtMs: copy.createdAtMs, stager, isStaging }
  })
  const own = stagings.find((staging) => staging.node === node)
  return stagings.flatMap((staging): readonly Stager[] => {
    const url = agents.get(staging.node)
    if (url === undefined) return []
    const { isStaging } = staging
    if (staging.node === node) return [{ node, url: '', isStaging, mayHave: false }]
    return [{ node: staging.node, url, isStaging, mayHave: mayHave(staging, own, invited) }]
  })
}
