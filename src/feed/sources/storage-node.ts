import { DscError } from '../../failure/dsc-error.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { StorageTls } from '../storage/open-socket.js'
import { type StorageAddress, StorageClient } from '../storage/storage-client.js'
import { LatencyWindow } from './latency.js'

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
