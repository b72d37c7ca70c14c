import { DscError } from '../../failure/dsc-error.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { StorageTls } from '../storage/open-socket.js'
import { type StorageAddress, StorageClient } from '../storage/storage-client.js'

/** Where a storage node listens. */
export interface StorageNodePlace {
  /** Undefined: nowhere as yet. */
  readonly address: StorageAddress | undefined
  /** Asks where it listens now, for it may have been started anew; absent: at its address or not at all. */
  readonly find?: () => Promise<StorageAddress | undefined>
}

/** What is asked of a storage node, and how it is reached. */
export interface StorageNodeOptions {
  readonly table: SampleTable
  readonly arenaFd: number
  readonly token: string | undefined
  readonly tls?: StorageTls | undefined
  /** How long after its failure, and after each probe that failed, a node is tried again. Default 5 s. */
  readonly breakerMs?: number
}

/** A node that does not take a connection within this time is silent, ms. */
export const CONNECT_TIMEOUT_MS = 2000

/** A storage node as a feed sees it: the connection to it, how fast it answers, and its breaker. */
export class StorageNode {
  readonly latency = new LatencyWindow()
  readonly #options: StorageNodeOptions
  readonly #find: StorageNodePlace['find']
  #address: StorageAddress | undefined
  #client: StorageClient | undefined
  #connecting: Promise<StorageClient> | undefined
  #isBroken = false
  #isClosed = false

  constructor(place: StorageNodePlace, options: StorageNodeOptions) {
    this.#address = place.address
    this.#find = place.find
    this.#options = options
    if (!place.address) this.break()
  }

  /** For messages. */
  get name(): string {
    return this.#address ? `${this.#address.host}:${this.#address.port}` : 'not there'
  }

  /** It failed and is not asked until a connection to it succeeds: its breaker is open. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** Its connection; callers that come while it is being made share it. */
  async connect(): Promise<StorageClient> {
    if (this.#isClosed) throw new DscError('FEED_GONE', 'the feed is closing')
    if (this.#client?.isOpen) return this.#client
    if (!this.#address) throw new DscError('FEED_GONE', 'the storage node listens nowhere')
    const { table, arenaFd, token, tls } = this.#options
    this.#connecting ??= StorageClient.connect({
      address: this.#address,
      token,
      tls,
      table,
      arenaFd,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    }).finally(() => {
      this.#connecting = undefined
    })
    this.#client = await this.#connecting
    return this.#client
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
    setTimeout(probe, this.#options.breakerMs ?? 5000).unref()
  }

  /** Whether the node answers where it listened, else where it listens now. */
  async #answers(): Promise<boolean> {
    const canConnect = () =>
      this.connect().then(
        () => true,
        () => false,
      )
    if (await canConnect()) return true
    const address = await this.#find?.().catch(() => undefined)
    if (!address || this.#isClosed) return false
    this.#address = address
    return canConnect()
  }
}

/** Recent durations of one node's answers, in milliseconds, and what follows from them. */
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

  /** When a missed sample is asked for elsewhere as well: twice the slow answers, 20 ms at least. */
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
