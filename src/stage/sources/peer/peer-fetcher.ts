import { setTimeout as sleep } from 'node:timers/promises'
import type { Dataset } from '../../../model/dataset.js'
import { rankOwners } from '../../../policy/placement.js'
import { formatObjectUrl } from '../../peer-wire.js'
import type { ObjectFacts } from '../../plan/object-facts.js'
import { throwIfStopped } from '../../retry.js'
import type { Fetcher, FetchRequest } from '../../source.js'
import { openPeerConnection, type PeerAccess, type PeerConnection } from './peer-connection.js'

/** A node that may supply parts. `take` leases what it has; false: it no longer has it. */
export interface Provider {
  readonly node: string
  readonly url: string
  readonly take: () => Promise<boolean>
}

interface PeerFetcherOptions {
  /** Nodes that have everything, best first. */
  readonly ready: readonly Provider[]
  /** Nodes that stage side by side, this one among them; used where no node is ready. */
  readonly shares: readonly Provider[]
  readonly node: string
  readonly dataset: Dataset
  readonly access: PeerAccess
  readonly connections: number
  readonly received: { store: number; readonly peers: Record<string, number> }
  readonly noteProblem: (node: string, problem: string) => void
  readonly explain: (error: unknown) => unknown
  readonly openOriginFetcher: () => Promise<Fetcher>
}

/** A peer that failed is left alone for so long, ms. */
const REST_MS = 10_000
/** A node that stages side by side may begin later than this one by so much, ms. */
const BEGIN_PATIENCE_MS = 15_000
/** A node that owns a part and has sent nothing at all for so long is not waited for any more, ms. */
const SILENT_PATIENCE_MS = 60_000
const ASK_AGAIN_MS = 300
const MOST_REMEMBERED = 10_000

interface Peer {
  readonly connection: PeerConnection
  restsUntilMs: number
  inFlight: number
  lastBytesMs: number
  /** Times that it was waited for in vain; after the first it is only asked, with longer rests. */
  vainWaits: number
}

/** Reads ranges from peers and, where none can, from the store; goes on at the byte where one of them stopped. */
export async function openPeerFetcher(options: PeerFetcherOptions): Promise<Fetcher> {
  const { node, received, ready, shares } = options
  const peers = new Map<string, Peer>()
  const providers = new Map([...shares, ...ready].map((provider) => [provider.node, provider]))
  const shareNames = shares.map((provider) => provider.node)
  // Who served a range last: when that is asked for again, its bytes were wrong.
  const served = new Map<string, string>()
  let origin: Promise<Fetcher> | undefined
  const openOrigin = () => {
    origin ??= options.openOriginFetcher()
    return origin
  }
  const peerOf = (provider: Provider): Peer => {
    let peer = peers.get(provider.node)
    if (peer === undefined) {
      const connection = openPeerConnection(provider.url, options.access, options.connections)
      peer = { connection, restsUntilMs: 0, inFlight: 0, lastBytesMs: performance.now(), vainWaits: 0 }
      peers.set(provider.node, peer)
    }
    return peer
  }
  const remember = (range: string, who: string) => {
    if (served.size >= MOST_REMEMBERED) served.delete(served.keys().next().value!)
    served.set(range, who)
  }

  /** Whom to ask for a range, in order; undefined is the store. */
  const rank = (key: string, offset: number, distrusted: string | undefined): (Provider | undefined)[] => {
    const nowMs = performance.now()
    const isUsable = (provider: Provider) =>
      provider.node !== distrusted && peerOf(provider).restsUntilMs <= nowMs
    if (ready.length > 0) {
      const usable = ready.filter(isUsable)
      return [...usable.sort((a, b) => peerOf(a).inFlight - peerOf(b).inFlight), undefined]
    }
    const ranked: (Provider | undefined)[] = []
    for (const owner of rankOwners(shareNames, key, offset)) {
      if (owner === node) break // this node's own part, or its turn to stand in for its owner
      const provider = providers.get(owner)
      if (provider && isUsable(provider)) ranked.push(provider)
    }
    return [...ranked, undefined]
  }

  const ask = async (
    provider: Provider,
    request: Pick<FetchRequest, 'key' | 'sizeBytes' | 'etag' | 'versionId' | 'signal'>,
    range: { offset: number; length: number },
    onFacts: (facts: ObjectFacts) => void,
    sink: (chunk: Uint8Array) => number,
  ): Promise<boolean> => {
    const peer = peerOf(provider)
    const beganMs = performance.now()
    const path = formatObjectUrl(options.dataset.name, options.dataset.source, request)
    peer.inFlight += 1
    try {
      if (!(await provider.take())) return false
      for (;;) {
        throwIfStopped(request.signal)
        const answer = await peer.connection.get({
          ...{ path, ...range, onFacts, signal: request.signal },
          sink: (chunk) => {
            range.offset += chunk.length
            range.length -= chunk.length
            peer.lastBytesMs = performance.now()
            received.peers[provider.node] = (received.peers[provider.node] ?? 0) + chunk.length
            return sink(chunk)
          },
        })
        if (answer.outcome === 'ok') return true
        throwIfStopped(request.signal)
        const nowMs = performance.now()
        if (answer.outcome === 'failed') {
          peer.restsUntilMs = nowMs + REST_MS
          options.noteProblem(provider.node, answer.problem)
          return false
        }
        // Only those who stage side by side are worth waiting for.
        if (ready.length > 0) return false
        const silentMs = nowMs - Math.max(beganMs, peer.lastBytesMs)
        const firstPatienceMs = answer.outcome === 'missing' ? BEGIN_PATIENCE_MS : SILENT_PATIENCE_MS
        if (silentMs > (peer.vainWaits === 0 ? firstPatienceMs : 0)) {
          if (nowMs >= peer.restsUntilMs) {
            peer.restsUntilMs = nowMs + REST_MS * 2 ** Math.min(peer.vainWaits, 6)
            peer.vainWaits += 1
          }
          options.noteProblem(provider.node, `had no part for ${Math.round(silentMs / 1000)} s`)
          return false
        }
        if (answer.outcome === 'missing') await sleep(ASK_AGAIN_MS)
      }
    } finally {
      peer.inFlight -= 1
    }
  }

  return {
    async fetch(request) {
      const name = `${request.offset}/${request.key}`
      const range = { offset: request.offset, length: request.length }
      let hasFacts = false
      const onFacts = (facts: ObjectFacts) => {
        if (hasFacts) return
        hasFacts = true
        request.onFacts?.(facts)
      }
      for (const provider of rank(request.key, request.offset, served.get(name))) {
        if (provider === undefined) break
        if (await ask(provider, request, range, onFacts, request.sink)) {
          remember(name, provider.node)
          return
        }
        if (range.length === 0) return
      }
      remember(name, '')
      try {
        const fetcher = await openOrigin()
        await fetcher.fetch({
          ...request,
          ...range,
          onFacts,
          sink: (chunk) => {
            received.store += chunk.length
            return request.sink(chunk)
          },
        })
      } catch (error) {
        throw options.explain(error)
      }
    },
    async inspect(request) {
      let facts: ObjectFacts | undefined
      for (const provider of ready.length > 0 ? rank(request.key, 0, undefined) : []) {
        if (provider === undefined) break
        const noBytes = { offset: 0, length: 0 }
        const isAnswered = await ask(
          provider,
          request,
          noBytes,
          (found) => (facts = found),
          () => 0,
        )
        if (isAnswered && facts) return facts
      }
      try {
        return await (await openOrigin()).inspect(request)
      } catch (error) {
        throw options.explain(error)
      }
    },
    async close() {
      await Promise.all([...peers.values()].map(({ connection }) => connection.close()))
      await (await origin?.catch(() => undefined))?.close()
    },
  }
}
