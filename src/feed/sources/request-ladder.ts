import { setTimeout as sleep } from 'node:timers/promises'
import type { OnSample, ReadRequest, SampleSource, SampleStatus } from '../../samples/sample-source.js'
import { CONNECT_TIMEOUT_MS, type StorageNode } from './storage-node.js'

/** Counters of request failures; also names of metrics. */
export interface LadderCounters {
  retries: number
  hedges: number
  failovers: number
  corrupt: number
  fallback_samples: number
  breakers_opened: number
}

interface LadderOptions {
  /** The nodes that hold the samples of the request, the planned one first. */
  readonly holders: readonly StorageNode[]
  readonly fallback: SampleSource | undefined
  readonly counters: LadderCounters
  /** How long to wait for a broken node when nobody else has a sample, in ms. */
  readonly patienceMs: number
  readonly nowMs: () => number
  /** Called when a node's breaker has opened. */
  readonly onBroken: (node: StorageNode) => void
}

/** How often to look whether a broken node is back, in ms. */
const LOOK_MS = 100

/** A node delivered only part of a request, or nothing. */
class NodeFailure extends Error {
  readonly left: readonly number[]
  /** Whether it fell silent instead of hanging up. */
  readonly isSilence: boolean

  constructor(left: readonly number[], options: { readonly isSilence: boolean; readonly cause: unknown }) {
    super('a storage node failed', { cause: options.cause })
    this.left = left
    this.isSilence = options.isSilence
  }
}

/**
 * One request on its way from source to source: its node, again on a new connection, the other holders of its samples,
 * then the fallback. While its node is slow, the missed sample is also requested elsewhere (hedged). Samples are
 * identified by their index in the request.
 */
export class RequestLadder {
  readonly #options: LadderOptions
  readonly #request: ReadRequest
  readonly #onSample: OnSample
  /** Status reported for samples that are not here yet. */
  readonly #statuses = new Map<number, SampleStatus>()
  /** Makes the node leave the missed sample to others. */
  #abandonFirst = () => {}
  /** Whether the missed sample has arrived. */
  #hasFirst = false
  /** The hedged request for the missed sample: resolves to its index if it was found nowhere. */
  #hedged: Promise<readonly number[]> | undefined
  readonly #hedging = new AbortController()
  /** The nodes that had failed when they were asked last. */
  readonly #failed = new Set<StorageNode>()
  #waitsSinceMs: number | undefined
  #isWaiting = true

  constructor(request: ReadRequest, onSample: OnSample, options: LadderOptions) {
    this.#request = request
    this.#onSample = onSample
    this.#options = options
  }

  /** Resolves when every sample has its status. */
  async climb(): Promise<void> {
    const all = Array.from(this.#request.samples.keys())
    const [planned, ...others] = this.#options.holders
    let left = await this.#tryNode(planned!, all, { mayHedge: this.#request.isMiss })
    if (left.length > 0 && !this.#isAborted) {
      this.#options.counters.failovers++
      const back = new AbortController()
      const onBack = () => back.abort()
      void this.#waitForNode().then(onBack, () => {})
      left = await this.#askElsewhere(others, left, back.signal)
    }
    const hedged = (await this.#endHedge(planned!)) ?? []
    // Found nowhere else: its own node, which was only slow, may still deliver it.
    const lost = hedged.length > 0 ? await this.#tryNode(planned!, hedged, { mayHedge: false }) : hedged
    const unread = await this.#askAgain([...left, ...lost])
    this.#isWaiting = false
    for (const index of unread) this.#onSample(index, this.#statuses.get(index) ?? 'unreachable')
  }

  get #isAborted(): boolean {
    return this.#request.signal?.aborted ?? false
  }

  get #hasOthers(): boolean {
    return this.#options.holders.length > 1 || this.#options.fallback !== undefined
  }

  /** Where the ladder waits for nodes, a store that does not answer keeps no sample from its node, which does. */
  async #endHedge({ latency }: StorageNode): Promise<readonly number[] | undefined> {
    const hasPatience = this.#hedged !== undefined && this.#options.patienceMs > 0
    const giveUp = hasPatience ? setTimeout(() => this.#hedging.abort(), latency.deadlineMs) : undefined
    const hedged = await this.#hedged
    clearTimeout(giveUp)
    return hedged
  }

  /** `enough`: aborts when the samples are asked of their own node again. */
  async #askElsewhere(
    others: readonly StorageNode[],
    wanted: readonly number[],
    enough: AbortSignal,
  ): Promise<readonly number[]> {
    let left = wanted
    for (const other of others) {
      if (left.length === 0 || this.#isAborted) break
      left = await this.#tryNode(other, left, { mayHedge: false })
    }
    return this.#tryFallback(left, enough)
  }

  /** Asks nodes that come back, such as those of a service that is restarted, for what nobody else has. */
  async #askAgain(wanted: readonly number[]): Promise<readonly number[]> {
    let left = wanted
    while (left.length > 0 && !this.#isAborted) {
      const node = await this.#waitForNode().catch(() => undefined)
      if (node === undefined) break
      left = await this.#tryNode(node, left, { mayHedge: false })
    }
    return left
  }

  /** Resolves with a failed node once it is back. Rejects when it is waited for too long. */
  async #waitForNode(): Promise<StorageNode> {
    const { patienceMs, nowMs } = this.#options
    this.#waitsSinceMs ??= nowMs()
    const endMs = this.#waitsSinceMs + patienceMs
    while (this.#isWaiting && this.#failed.size > 0 && nowMs() < endMs && !this.#isAborted) {
      const back = [...this.#failed].find((node) => !node.isBroken)
      if (back) return back
      await sleep(LOOK_MS)
    }
    throw new Error('no storage node has come back')
  }

  /**
   * Returns the samples of `wanted` that the node did not deliver. A broken connection is retried once, but not after
   * complete silence if another source can answer instead. A node that failed is left alone until a probe succeeds.
   */
  async #tryNode(
    node: StorageNode,
    wanted: readonly number[],
    { mayHedge }: { readonly mayHedge: boolean },
  ): Promise<readonly number[]> {
    if (node.isBroken) {
      this.#failed.add(node)
      return wanted
    }
    this.#failed.delete(node)
    const { counters } = this.#options
    let left = wanted
    for (let attempt = 0; attempt < 2 && left.length > 0; attempt++) {
      const hedgeTimer = mayHedge && attempt === 0 ? this.#hedgeLater(node) : undefined
      try {
        return await this.#askNode(node, left)
      } catch (error) {
        if (!(error instanceof NodeFailure)) throw error
        left = error.left
        if (this.#isAborted) return left
        if (node.isBroken || (error.isSilence && this.#hasOthers)) break
        if (attempt === 0) counters.retries++
      } finally {
        clearTimeout(hedgeTimer)
      }
    }
    if (left.length > 0) {
      this.#failed.add(node)
      if (node.break()) this.#options.onBroken(node)
    }
    return left
  }

  /** Asks one node for samples. Returns the ones it did not deliver; rejects with NodeFailure. */
  async #askNode(node: StorageNode, wanted: readonly number[]): Promise<number[]> {
    const { nowMs } = this.#options
    const { signal } = this.#request
    const left = new Set(wanted)
    const startMs = nowMs()
    const { deadlineMs } = node.latency
    this.#abandonFirst = () => void left.delete(0)
    try {
      const client = await node.connect()
      const asked = wanted.filter((index) => left.has(index)) // the first may have been abandoned in the meantime
      if (asked.length === 0 || this.#isAborted) return [...left]
      const part = this.#partOf(asked)
      const onSample = (at: number, status: SampleStatus) => this.#take(asked[at]!, status, left)
      const fetch = client.fetch({ ...part, maxBytes: 0xffffffff, deadlineMs, onSample })
      if (asked[0] === 0)
        this.#abandonFirst = () => {
          left.delete(0)
          fetch.abandon(0)
          if (left.size === 0) fetch.cancel() // nothing else of the request is still to arrive
        }
      signal?.addEventListener('abort', fetch.cancel)
      await fetch.done.finally(() => signal?.removeEventListener('abort', fetch.cancel))
      if (!this.#isAborted) node.latency.add(nowMs() - startMs)
      return [...left]
    } catch (cause) {
      const isSilence = nowMs() - startMs >= Math.min(deadlineMs, CONNECT_TIMEOUT_MS)
      throw new NodeFailure([...left], { isSilence, cause })
    }
  }

  #take(index: number, status: SampleStatus, left: Set<number>): void {
    if (status === 'ok') {
      left.delete(index)
      if (index === 0) this.#hasFirst = true
      this.#onSample(index, status)
      return
    }
    if (status === 'corrupt') this.#options.counters.corrupt++
    this.#statuses.set(index, status)
  }

  /**
   * Requests the missed sample elsewhere if the node is slow. The time counts from before the connection, because
   * connecting to a node that is down takes longest.
   */
  #hedgeLater(node: StorageNode): NodeJS.Timeout | undefined {
    if (!this.#hasOthers) return undefined
    return setTimeout(() => this.#hedge(), node.latency.hedgeMs)
  }

  #hedge(): void {
    if (this.#hasFirst) return
    this.#options.counters.hedges++
    this.#abandonFirst()
    this.#hedged = this.#askElsewhere(this.#options.holders.slice(1), [0], this.#hedging.signal)
  }

  async #tryFallback(wanted: readonly number[], enough: AbortSignal): Promise<readonly number[]> {
    const { fallback, counters } = this.#options
    if (!fallback || wanted.length === 0 || this.#isAborted) return wanted
    const left = new Set(wanted)
    counters.fallback_samples += wanted.length
    const { isMiss, signal } = this.#request
    const stop = signal ? AbortSignal.any([signal, enough]) : enough
    const request = { node: 0, ...this.#partOf(wanted), isMiss, signal: stop }
    const reading = fallback
      .read(request, (at, status, origin = fallback.origin) => {
        if (enough.aborted) return
        if (status !== 'ok') return void this.#statuses.set(wanted[at]!, status)
        left.delete(wanted[at]!)
        this.#onSample(wanted[at]!, status, origin)
      })
      .catch(() => {})
    const ended = new Promise((resolve) => enough.addEventListener('abort', resolve, { once: true }))
    if (!enough.aborted) await Promise.race([reading, ended])
    return [...left]
  }

  #partOf(indexes: readonly number[]): Pick<ReadRequest, 'samples' | 'offsets'> {
    const { samples, offsets } = this.#request
    return {
      samples: Uint32Array.from(indexes, (i) => samples[i]!),
      offsets: Float64Array.from(indexes, (i) => offsets[i]!),
    }
  }
}
