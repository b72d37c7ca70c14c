import { DscError } from '../../failure/dsc-error.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { StorageTls } from '../storage/open-socket.js'
import { type StorageAddress, StorageClient } from '../storage/storage-client.js'

/** Where a storage node listens. */
export interface StorageNodePlace {
  /** Undefined if it does not listen yet. */
  readonly address: StorageAddress | undefined
  /** Finds where it listens now, in case it was restarted; without it, only its address counts. */
  readonly find?: () => Promise<StorageAddress | undefined>
  /** Finds the token for this node alone, which may change; absent: all have the same. */
  readonly findToken?: () => Promise<string | undefined>
}

/** Data for requests to a storage node, and how to reach it. */
export interface StorageNodeOptions {
  readonly table: SampleTable
  readonly arenaFd: number
  readonly token: string | undefined
  readonly tls?: StorageTls | undefined
  /** How long after its failure, and after each failed probe, to try a node again. Default 5 s. */
  readonly breakerMs?: number
}

/** How long a node may take to accept a connection before it counts as silent, in ms. */
export const CONNECT_TIMEOUT_MS = 2000

/** A storage node as seen by a feed: the connection to it, how fast it answers, and its breaker. */
export class StorageNode {
  readonly latency = new LatencyWindow()
  readonly #options: StorageNodeOptions
  readonly #place: StorageNodePlace
  #address: StorageAddress | undefined
  #client: StorageClient | undefined
  #connecting: Promise<StorageClient> | undefined
  #isBroken = false
  #isClosed = false

  constructor(place: StorageNodePlace, options: StorageNodeOptions) {
    this.#address = place.address
    this.#place = place
    this.#options = options
    if (!place.address) this.break()
  }

  /** For messages. */
  get name(): string {
    return this.#address ? `${this.#address.host}:${this.#address.port}` : 'not there'
  }

  /** Whether its breaker is open: it failed, and is not asked until a connection to it succeeds. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** Connects to the node; concurrent callers share the connection. */
  async connect(): Promise<StorageClient> {
    if (this.#isClosed) throw new DscError('FEED_GONE', 'the feed is closing')
    const { findToken } = this.#place
    if (this.#client?.isOpen) {
      if (findToken) this.#client.show(await findToken())
      return this.#client
    }
    this.#connecting ??= this.#open(findToken).finally(() => {
      this.#connecting = undefined
    })
    this.#client = await this.#connecting
    return this.#client
  }

  async #open(findToken: StorageNodePlace['findToken']): Promise<StorageClient> {
    const { table, arenaFd, token, tls } = this.#options
    if (!this.#address) throw new DscError('FEED_GONE', 'the storage node listens nowhere')
    const shown = findToken ? await findToken() : token
    const limits = { connectTimeoutMs: CONNECT_TIMEOUT_MS }
    return StorageClient.connect({ address: this.#address, token: shown, tls, table, arenaFd, ...limits })
  }

  /** Opens the breaker. Returns whether it was closed. */
  break(): boolean {
    if (this.#isBroken || this.#isClosed) return false
    this.#isBroken = true
    this.#probeLater()
    return true
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#client?.close()
    const late = await this.#connecting?.catch(() => undefined)
    late?.close()
  }

  #probeLater(): void {
    const probe = async () => {
      this.#isBroken = !(await this.#answers())
      if (this.#isBroken && !this.#isClosed) this.#probeLater()
    }
    setTimeout(() => void probe(), this.#options.breakerMs ?? 5000).unref()
  }

  /** Returns whether the node answers at its known address, or else where it listens now. */
  async #answers(): Promise<boolean> {
    const canConnect = () =>
      this.connect().then(
        () => true,
        () => false,
      )
    if (await canConnect()) return true
    const address = await this.#place.find?.().catch(() => undefined)
    if (!address || this.#isClosed) return false
    this.#address = address
    return canConnect()
  }
}

/** Recent durations of one node's answers, in milliseconds, and the limits derived from them. */
class LatencyWindow {
  readonly #durations: number[] = []
  #next = 0

  add(durationMs: number): void {
    this.#durations[this.#next++ % 64] = durationMs
  }

  /** How long a node may send nothing before its connection is given up: four times the slow answers, 1 s at least. */
  get deadlineMs(): number {
    return Math.max(1000, 4 * (this.#quantileMs(0.99) ?? 500))
  }

  /** When to request a missed sample elsewhere as well: after twice the slow answers, 20 ms at least. */
  get hedgeMs(): number {
    return Math.max(20, 2 * (this.#quantileMs(0.95) ?? 50))
  }

  /** The quantile `share` (0–1) of the last 64 durations, or undefined before the first. */
  #quantileMs(share: number): number | undefined {
    if (this.#durations.length === 0) return undefined
    const sorted = this.#durations.toSorted((a, b) => a - b)
    return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  }
}
