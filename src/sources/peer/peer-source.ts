import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { Dataset } from '../../model/dataset.js'
import { formatTransferTask } from '../../model/lease.js'
import { agentUrls } from '../../model/node.js'
import { LOOK_MS, pause } from '../../platform/poll.js'
import { planSharedPartBytes } from '../../proof/plan-parts.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { markDamaged } from '../damaged-copies.js'
import type {
  Fetcher,
  ListedObject,
  ListOptions,
  Origins,
  Source,
  SourceAccess,
  StagingPlan,
  StagingSource,
} from '../source.js'
import { listPeerManifest } from './fetch-manifest.js'
import { findListers, findPeers, MAX_PEERS, type PeerCopy } from './find-peers.js'
import { Neighbours } from './neighbours.js'
import type { PeerAccess } from './peer-connection.js'
import { PeerFetcher } from './peer-fetcher.js'
import type { DonorDamage, PeerLocation } from './peer-home.js'
import { type PeerNews, PeerReport } from './peer-report.js'
import type { PeerQuestion, PeerThreadLocation } from './peer-thread.js'
import { planProviders, type Stager } from './plan-providers.js'

/** Keeps copies from eviction until it is released. */
export interface CopyKeeper {
  /** Takes a copy; false: it is no longer ready. */
  take(copyId: string): Promise<boolean>
  release(): Promise<void>
}

/** The dataset to read from peers, and how to keep their copies from being evicted while doing so. */
export interface PeerSourceOptions {
  readonly dataset: Dataset
  readonly plan: StagingPlan
  readonly record: RecordStore
  /** This node. */
  readonly node: string
  readonly access: PeerAccess
  /** Whether a node's word about an object replaces the source's checksum. */
  readonly trustsNodes: boolean
  /** Opens the keeper that protects peers' copies from eviction while they are read. */
  readonly openKeeper: () => CopyKeeper
  /** A folder on this node for peers' manifests. */
  readonly scratch: string
  /** Opens the source that the dataset names; only called when peers cannot help. */
  readonly openOrigin: () => Promise<Source>
}

/** How long to wait for the nodes that stage side by side to appear in the record, in ms. */
const MEET_MS = 5000

/**
 * Opens a dataset by way of other nodes: lists it from the manifest of a peer's ready copy, unless the source may have
 * changed, and reads it from peers under `transfer` leases; a part that fails comes from another peer or the store.
 */
export async function openPeerSource(options: PeerSourceOptions): Promise<StagingSource> {
  const { dataset, plan, record, node } = options
  const peers = (await findPeers({ record, node, dataset })).slice(0, MAX_PEERS)
  const invited = peers.length > 0 ? [] : await findInvited(record, node, plan.sharedWith)
  return new PeerSource(options, peers, invited)
}

class PeerSource implements StagingSource {
  readonly url: string
  readonly #options: PeerSourceOptions
  readonly #peers: readonly PeerCopy[]
  readonly #neighbours: Neighbours
  readonly #keeper: CopyKeeper
  readonly #report = new PeerReport()
  #origin: Promise<Source> | undefined
  /** How threads read the store. */
  #store: Promise<SourceAccess> | undefined

  constructor(options: PeerSourceOptions, peers: readonly PeerCopy[], invited: readonly Stager[]) {
    this.url = options.dataset.source
    this.#options = options
    this.#peers = peers
    this.#keeper = options.openKeeper()
    const { record, node, dataset } = options
    this.#neighbours = new Neighbours({ record, node, dataset }, { ready: peers, invited })
  }

  describeOrigins(): Origins {
    return this.#report.describe()
  }

  async *list(listOptions: ListOptions): AsyncGenerator<readonly ListedObject[]> {
    if (!this.#options.plan.isRefresh)
      for (const peer of await this.#findListers()) {
        const listed = await this.#beginListing(peer, listOptions.signal)
        if (listed === undefined) continue
        yield listed.first
        yield* listed.rest
        return
      }
    try {
      yield* (await this.#openOrigin()).list(listOptions)
    } catch (error) {
      throw this.#report.explain(error)
    }
  }

  async openFetcher({ connections }: { readonly connections: number }): Promise<Fetcher> {
    await this.#neighbours.watch()
    return new PeerFetcher({
      ...this.#location,
      connections,
      report: this.#report,
      home: {
        findProviders: () => this.#neighbours.providers,
        take: (copyId) => this.#keeper.take(copyId),
        onDamage: (donor, damage) => this.#markDamaged(donor, damage),
        openOriginFetcher: async () => (await this.#openOrigin()).openFetcher({ connections }),
      },
    })
  }

  async describeAccess(): Promise<SourceAccess> {
    await this.#neighbours.watch()
    const location: PeerThreadLocation = { ...this.#location, providers: this.#neighbours.providers }
    return {
      scheme: 'peers',
      location,
      answer: (question) => this.#answer(question as PeerQuestion),
      onNews: (news) => this.#report.addNews(news as PeerNews),
    }
  }

  isAwaited(key: string, offset: number): boolean {
    const part = { node: this.#options.node, key, offset }
    return planProviders(this.#neighbours.providers, part)[0]?.isWaitedFor === true
  }

  isShared(): boolean {
    return this.#neighbours.providers.stagers.some(({ node }) => node !== this.#options.node)
  }

  planPartBytes(datasetBytes: number): number {
    return planSharedPartBytes(datasetBytes)
  }

  async close(): Promise<void> {
    this.#neighbours.close()
    await this.#keeper.release()
    await (await this.#origin?.catch(() => undefined))?.close()
  }

  get #location(): PeerLocation {
    const { node, access, dataset, trustsNodes } = this.#options
    return { node, access, trustsNodes, dataset: { name: dataset.name, source: dataset.source } }
  }

  async #answer(question: PeerQuestion): Promise<unknown> {
    switch (question.ask) {
      case 'providers':
        return this.#neighbours.changedFrom(question.known)
      case 'take':
        return this.#keeper.take(question.copyId)
      case 'damage':
        return this.#markDamaged(question.node, question.damage)
      case 'store': {
        const { scheme, location } = await this.#accessStore()
        return { scheme, location }
      }
      case 'of-store':
        return (await this.#accessStore()).answer?.(question.question)
    }
  }

  #accessStore(): Promise<SourceAccess> {
    this.#store ??= this.#openOrigin().then((origin) => {
      if (origin.describeAccess) return origin.describeAccess()
      throw new Error(`${origin.url} cannot be read by other threads`)
    })
    return this.#store
  }

  async #findListers(): Promise<readonly PeerCopy[]> {
    const { plan, record, node, dataset } = this.#options
    return plan.version === undefined ? this.#peers : findListers({ record, node, dataset }, plan.version)
  }

  /** The first page of a peer's manifest and the pages after it; undefined if the manifest cannot be read. */
  async #beginListing(peer: PeerCopy, signal: AbortSignal | undefined) {
    if (!(await this.#keeper.take(peer.copy.copyId))) return undefined
    const { access, scratch, trustsNodes } = this.#options
    const { copyId, version } = peer.copy
    const expected = trustsNodes ? null : version
    const rest = listPeerManifest({ url: peer.url, copyId, version: expected, access, scratch, signal })
    try {
      const { value: first, done } = await rest.next()
      return done ? undefined : { first, rest }
    } catch (error) {
      throwIfStopped(signal)
      this.#report.addProblem(
        peer.node,
        `manifest: ${error instanceof Error ? error.message : String(error)}`,
      )
      return undefined
    }
  }

  /** Marks a copy as damaged, so that its node knows and no other node reads from it. */
  async #markDamaged(donor: string, damage: DonorDamage): Promise<void> {
    const { record, node, dataset } = this.#options
    const filter = { dataset: dataset.name, node: donor, states: ['ready'] } as const
    const [newest] = (await record.listCopies(filter, record.nowMs())).toSorted(
      (a, b) => b.createdAtMs - a.createdAtMs,
    )
    const copy = this.#peers.find((peer) => peer.node === donor)?.copy ?? newest
    if (copy === undefined) return
    const { key, offset, expected, found } = damage
    await markDamaged(record, copy, {
      task: formatTransferTask(node),
      reason: `sent wrong bytes of ${JSON.stringify(key)} at ${offset} to ${node}: expected ${expected}, found ${found}`,
      detail: { ...damage, foundBy: node },
    })
  }

  async #openOrigin(): Promise<Source> {
    this.#origin ??= this.#options.openOrigin()
    try {
      return await this.#origin
    } catch (error) {
      throw this.#report.explain(error)
    }
  }
}

/** The agents of the nodes told to stage side by side with this one, which is among them without a URL. */
async function findInvited(
  record: RecordStore,
  node: string,
  sharedWith: readonly string[],
): Promise<readonly Stager[]> {
  if (sharedWith.length < 2 || !sharedWith.includes(node)) return []
  const endMs = performance.now() + MEET_MS
  for (;;) {
    const urls = agentUrls(await record.listNodes(), record.nowMs())
    const invited = sharedWith.flatMap((name) => {
      const url = urls.get(name)
      return name === node || url !== undefined
        ? [{ node: name, url: url ?? '', isStaging: true, mayHave: false }]
        : []
    })
    if (invited.length === sharedWith.length || performance.now() > endMs) return invited
    await pause(LOOK_MS.start)
  }
}
