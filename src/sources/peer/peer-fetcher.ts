import { setTimeout as sleep } from 'node:timers/promises'
import { BoundedMap } from '../../model/bounded-map.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import { formatObjectUrl, type WireObject } from '../peer-wire.js'
import type { Fetcher, FetchRequest, GivenDigest, InspectRequest } from '../source.js'
import { type Awaited, AwaitedParts } from './awaited-parts.js'
import { checkDonor } from './check-donor.js'
import { NodesWord } from './nodes-word.js'
import { Peer, type PeerOutcome, type PeerRequest } from './peer.js'
import { openPeerConnection } from './peer-connection.js'
import type { PeerHome, PeerLocation } from './peer-home.js'
import type { PeerNews, PeerReport } from './peer-report.js'
import { type Asked, type PlannedPart, type Provider, planProviders } from './plan-providers.js'

interface PeerFetcherOptions extends PeerLocation {
  readonly connections: number
  readonly home: PeerHome
  readonly report: PeerReport
  /** A monotonic clock, in ms; default: that of the process. */
  readonly nowMs?: () => number
}

/** Minimum time between two rounds of asking all nodes, in ms. */
const ASK_AGAIN_MS = 300
/** How long to wait for a part that is not needed soon from a node that answers and is still staging, in ms. */
const BUSY_PATIENCE_MS = 30_000
const MAX_REMEMBERED = 10_000
/** Number of failed waits after which the store is asked instead of the next node. */
const MAX_GIVEN_UP = 3
/** Above this size the bytes cost more than the requests. */
const MAX_GATHERED_BYTES = 256 * 1024
/** Stands for the store in `#servedBy`. */
const STORE = ''

/**
 * Reads ranges from peers and, where no peer can help, from the store; resumes at the byte where the last one stopped.
 */
export class PeerFetcher implements Fetcher {
  readonly #options: Required<PeerFetcherOptions>
  readonly #peers = new Map<string, Peer>()
  /** The node that last served a range: if the range is requested again, its bytes were wrong. */
  readonly #servedBy = new BoundedMap<string, string>(MAX_REMEMBERED)
  readonly #awaited = new AwaitedParts()
  readonly #word: NodesWord
  #origin: Promise<Fetcher> | undefined

  constructor(options: PeerFetcherOptions) {
    this.#options = { nowMs: () => performance.now(), ...options }
    this.#word = new NodesWord(options)
  }

  async fetch(request: FetchRequest): Promise<void> {
    const name = `${request.offset}/${request.key}`
    const range = { offset: request.offset, length: request.length }
    const path = this.#pathOf(request)
    const onFacts = once((facts: ObjectFacts) => request.onFacts?.(facts))
    const isBelieved = this.#word.isEnough(request)
    const onDigest = once((given: GivenDigest) => {
      // Later it would miss the bytes that came before.
      if (range.length === request.length)
        request.onDigest?.({ ...given, isProven: given.isProven && isBelieved })
    })
    const { sink, signal, needsDigest } = request
    const part = { offset: request.offset, length: request.length }
    const distrusted = this.#servedBy.get(name)
    if (distrusted !== undefined && distrusted !== STORE) await this.#checkDonor(distrusted, request, path)
    // No node has a digest of just a range of a part.
    const isStoreOnly = request.isRepeated || (needsDigest && request.partOffset !== undefined)
    const beganMs = this.#options.nowMs()
    const gathered = this.#gatheredOf(request)
    const onTold = (told: ObjectFacts) => onFacts(this.#word.doubt(told, request))
    const asked = {
      ...{ path, gathered, part, range, onFacts: onTold, onDigest, needsDigest, sink, signal, beganMs },
    }
    const awaited: Awaited = { path, part, urgency: request.urgency ?? 'listed' }
    const without = new Set(distrusted === undefined ? [] : [distrusted])
    this.#awaited.note(request.key, awaited)
    try {
      while (!isStoreOnly) {
        const known = without.size
        const { outcome, node } = await this.#askAround({ request, awaited, without }, asked)
        if (node !== undefined) this.#servedBy.set(name, node)
        if (outcome === 'done') return
        if (outcome === 'elsewhere' && (without.size === known || without.size >= MAX_GIVEN_UP)) break
      }
    } finally {
      this.#awaited.forget(request.key, awaited)
    }
    this.#servedBy.set(name, STORE)
    await this.#fromOrigin((fetcher) =>
      fetcher.fetch({
        ...request,
        ...range,
        onFacts,
        sink: (chunk) => {
          this.#options.report.addStoreBytes(chunk.length)
          return sink(chunk)
        },
      }),
    )
  }

  /**
   * Asks every node that may have the rest of a range, nearest first. The first one holds the request until it has it;
   * if it is late, the nodes that it takes the range from may have it. Adds nodes that will not have it to `without`.
   */
  async #askAround(
    about: { readonly request: FetchRequest; readonly awaited: Awaited; readonly without: Set<string> },
    asked: Omit<PeerRequest, 'isWaitedFor' | 'held' | 'isSpared' | 'isStaging'>,
  ): Promise<{ readonly outcome: PeerOutcome; readonly node?: string }> {
    const { request, awaited, without } = about
    const { key, offset, partOffset = offset } = request
    const part = { key, offset: partOffset, isWanted: awaited.urgency === 'wanted' }
    const roundMs = this.#options.nowMs()
    let outcome: PeerOutcome = 'elsewhere'
    let late: Peer | undefined
    for (const { provider, isWaitedFor } of this.#rank(part, without)) {
      if (!(await this.#isKept(provider))) continue
      const peer = this.#peerOf(provider)
      const isHeld = isWaitedFor && !peer.isLate && this.#options.nowMs() - roundMs < ASK_AGAIN_MS
      const isStaging = () => this.#isStaging(provider)
      awaited.heldBy = isHeld ? peer : undefined
      const held = isHeld ? awaited.urgency : undefined
      const isSpared = !isHeld && outcome === 'later' && awaited.urgency === 'listed'
      const answer = await peer.read({ ...asked, isWaitedFor, held, isSpared, isStaging })
      awaited.heldBy = undefined
      if (answer === 'done') {
        late?.noteLate()
        return { outcome: 'done', node: provider.node }
      }
      if (isHeld && answer === 'later') {
        outcome = 'later'
        // Others would have to send it in its place, most of all the node that reads from the store.
        const nowMs = this.#options.nowMs()
        const wasHeld = nowMs - roundMs >= ASK_AGAIN_MS // one that has not begun yet says so at once
        if (wasHeld) late = peer
        if (wasHeld && awaited.urgency === 'listed' && nowMs - asked.beganMs < BUSY_PATIENCE_MS) break
      }
      if (asked.range.length === 0) return { outcome: 'done' }
      if (answer === 'later') outcome = 'later'
      else if (isWaitedFor) without.add(provider.node)
    }
    const leftMs = roundMs + ASK_AGAIN_MS - this.#options.nowMs()
    if (outcome === 'later' && leftMs > 0) await sleep(leftMs)
    return { outcome }
  }

  hurry(key: string, range?: Pick<FetchRequest, 'offset' | 'length'>): void {
    this.#awaited.hurry(key, range)
  }

  inspect(request: InspectRequest): Promise<ObjectFacts> {
    return this.#word.inspect(request, {
      askNodes: () => this.#inspectPeers(request),
      askStore: () => this.#fromOrigin((fetcher) => fetcher.inspect(request)),
    })
  }

  async #inspectPeers(request: InspectRequest): Promise<ObjectFacts | undefined> {
    let facts: ObjectFacts | undefined
    const isReady = this.#options.home.findProviders().ready.length > 0 // a stager would have to ask the store, too
    for (const { provider, isWaitedFor } of isReady ? this.#rank({ key: request.key, offset: 0 }) : []) {
      if (!(await this.#isKept(provider))) continue
      const range = { offset: 0, length: 0 }
      const onFacts = (told: ObjectFacts) => {
        facts = this.#word.doubt(told, request)
      }
      const asked = {
        path: this.#pathOf(request),
        part: range,
        range,
        onFacts,
        onDigest: () => {},
        sink: () => 0,
        signal: request.signal,
        isWaitedFor,
        held: undefined,
        isStaging: () => false,
        beganMs: this.#options.nowMs(),
      }
      if ((await this.#peerOf(provider).read(asked)) === 'done' && facts) return facts
    }
    return undefined
  }

  takeNews(): PeerNews | undefined {
    return this.#options.report.takeNews()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#peers.values()].map((peer) => peer.close()))
    await (await this.#origin?.catch(() => undefined))?.close()
  }

  #pathOf(object: InspectRequest): string {
    const { name, source } = this.#options.dataset
    return formatObjectUrl(name, source, object)
  }

  /** Small whole objects travel together with others; an object that is waited for must not queue behind them. */
  #gatheredOf({ offset, length, urgency, ...object }: FetchRequest): WireObject | undefined {
    const { key, sizeBytes, etag, versionId } = object
    const isSmall = offset === 0 && length === sizeBytes && sizeBytes <= MAX_GATHERED_BYTES
    if (!isSmall || urgency === 'wanted') return undefined
    const { name, source } = this.#options.dataset
    return { dataset: name, source, key, sizeBytes, etag, versionId }
  }

  /** The nodes to ask for a range before the store, in order, leaving out those that cannot be asked. */
  #rank(part: Omit<PlannedPart, 'node'>, without: ReadonlySet<string> = new Set()): readonly Asked[] {
    const { ready, stagers } = this.#options.home.findProviders()
    const mayAsk = ({ node }: Provider) => !without.has(node) && this.#peers.get(node)?.isResting !== true
    const providers = { ready: ready.filter(mayAsk), stagers: stagers.filter(mayAsk) }
    const asked = planProviders(providers, { ...part, node: this.#options.node })
    const givers = asked.filter(({ isWaitedFor }) => isWaitedFor)
    const others = asked.filter(
      ({ provider, isWaitedFor }) => !isWaitedFor && !this.#peerOf(provider).isLikelyEmpty,
    )
    if (providers.ready.length > 0)
      others.sort((a, b) => this.#peerOf(a.provider).inFlight - this.#peerOf(b.provider).inFlight)
    return [...givers, ...others]
  }

  #isKept({ copyId }: Provider): Promise<boolean> | true {
    return copyId === undefined || this.#options.home.take(copyId)
  }

  #isStaging({ node }: Provider): boolean {
    const { ready, stagers } = this.#options.home.findProviders()
    const isSame = (provider: Provider) => provider.node === node
    return ready.some(isSame) || stagers.some((stager) => stager.isStaging && isSame(stager))
  }

  /** Finds out whether a peer's wrong bytes were damaged on the way or are wrong on the peer. */
  async #checkDonor(node: string, request: FetchRequest, path: string): Promise<void> {
    const peer = this.#peers.get(node)
    if (peer === undefined) return
    const { key, offset, length, signal } = request
    const damage = await checkDonor(peer, { path, signal, offset, length })
    if (damage === undefined) {
      this.#options.report.addProblem(node, `sent bytes of ${JSON.stringify(key)} that were wrong on arrival`)
      return
    }
    peer.dismiss(`has a damaged ${JSON.stringify(key)}`)
    await this.#options.home.onDamage(node, { key, offset, ...damage })
  }

  #peerOf(provider: Provider): Peer {
    const known = this.#peers.get(provider.node)
    if (known) return known
    const { access, connections, report, nowMs } = this.#options
    const peer = new Peer({
      // Twice as many, so that requests answered at once never queue behind requests that a node holds.
      connection: openPeerConnection(provider.url, access, connections * 2),
      onBytes: (bytes) => report.addBytes(provider.node, bytes),
      onProblem: (problem) => report.addProblem(provider.node, problem),
      nowMs,
    })
    this.#peers.set(provider.node, peer)
    return peer
  }

  async #fromOrigin<Value>(ask: (fetcher: Fetcher) => Promise<Value>): Promise<Value> {
    try {
      this.#origin ??= this.#options.home.openOriginFetcher()
      return await ask(await this.#origin)
    } catch (error) {
      throw this.#options.report.explain(error)
    }
  }
}

/** Passes on only the first call. */
function once<Value>(call: (value: Value) => void): (value: Value) => void {
  let isCalled = false
  return (value) => {
    if (isCalled) return
    isCalled = true
    call(value)
  }
}
