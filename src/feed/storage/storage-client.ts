import type { Socket, TcpNetConnectOpts } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import type { LengthPrefixedReader } from '../../frames/length-prefixed.js'
import { openSampleTable, type SampleTable } from '../../samples/sample-table.js'
import { allocateForCrc32 } from '../../wasm/crc32.js'
import { ItemReceiver } from './item-receiver.js'
import { openStorageSocket, type StorageTls } from './open-socket.js'
import { type Fetch, PendingFetches, type SampleFetch } from './pending-fetches.js'
import { proveToken } from './prove-token.js'
import { formatStorageFrame, readStorageFrames, STORAGE_MESSAGE, type StorageHead } from './storage-wire.js'

/** Where a storage node listens. */
export interface StorageAddress {
  readonly host: string
  readonly port: number
}

interface StorageClientOptions {
  readonly address: StorageAddress
  /** The token, or a pass in its place. */
  readonly token: string | undefined
  /** Without it, connections are not encrypted. */
  readonly tls?: StorageTls | undefined
  /** The manifest both sides must have; absent until it is fetched. */
  readonly table?: SampleTable | undefined
  /** File to write samples to; absent if only the manifest is fetched. */
  readonly arenaFd?: number | undefined
  /** Default 2 s. */
  readonly connectTimeoutMs?: number
}

/** The stripe of a storage node: the samples i with i mod count = index. */
export interface ServedStripe {
  readonly index: number
  readonly count: number
}

/** Caller that waits for something the server sends once. */
interface Waiter<T> {
  resolve(value: T): void
  reject(error: Error): void
}

const READ_BUFFER_BYTES = 256 * 1024

/** One connection to a storage node. */
export class StorageClient {
  readonly #options: StorageClientOptions
  readonly #fetches: PendingFetches
  readonly #items: ItemReceiver | undefined
  readonly #frames: LengthPrefixedReader<StorageHead>
  readonly #socket: Socket
  #welcomed: Waiter<StorageClient> | undefined
  #manifest: Waiter<Buffer> | undefined
  #stripe: ServedStripe | undefined
  #isOpen = false
  #challenge = ''
  #token: string | undefined
  #failure: Error | undefined

  private constructor(options: StorageClientOptions, welcomed: Waiter<StorageClient>) {
    const { table, arenaFd, address } = options
    this.#options = options
    this.#token = options.token
    this.#welcomed = welcomed
    this.#items = table && arenaFd !== undefined ? new ItemReceiver(table, arenaFd) : undefined
    const client = this
    this.#fetches = new PendingFetches({
      get isOpen() {
        return client.#isOpen
      },
      send: (frame) => void this.#socket.write(frame),
      lose: (error) => this.#lose(error),
      gone: (why) => this.#gone(why),
    })
    this.#frames = readStorageFrames(this.#peer, {
      onItems: (request, bytes) => this.#items?.take(this.#fetches.hear(request), bytes),
      onControl: (head, payload) => this.#takeControl(head, payload),
    })
    const { host, port } = address
    this.#socket = openStorageSocket({ host, port, noDelay: true, onread: this.#reading() }, options.tls)
    this.#socket.setTimeout(options.connectTimeoutMs ?? 2000, () => this.#lose(this.#gone('does not answer')))
    this.#socket.on('error', (error) => this.#lose(this.#gone(`cannot be reached: ${error.message}`)))
    this.#socket.on('close', () => this.#lose(this.#gone('hung up')))
  }

  /** Connects, proves knowledge of the token and compares manifests. */
  static connect(options: StorageClientOptions): Promise<StorageClient> {
    return new Promise((resolve, reject) => new StorageClient(options, { resolve, reject }))
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Undefined if the node has all samples. */
  get stripe(): ServedStripe | undefined {
    return this.#stripe
  }

  fetch(request: SampleFetch): Fetch {
    if (this.#isOpen) return this.#fetches.start(request)
    const done = Promise.reject(this.#failure ?? this.#gone('is not connected'))
    return { done, abandon: () => {}, cancel: () => {} }
  }

  /** Shows the node what counts from now on, such as a later pass. */
  show(token: string | undefined): void {
    if (token === this.#token || !this.#isOpen) return
    this.#token = token
    this.#sayHello()
  }

  async fetchManifest(): Promise<SampleTable> {
    const bytes = await new Promise<Buffer>((resolve, reject) => {
      this.#manifest = { resolve, reject }
      this.#socket.write(formatStorageFrame({ type: STORAGE_MESSAGE.getManifest, request: 0 }))
    })
    return openSampleTable(bytes)
  }

  close(): void {
    this.#lose(this.#gone('was closed'))
  }

  get #peer(): string {
    const { host, port } = this.#options.address
    return `storage node ${host}:${port}`
  }

  #gone(why: string): DscError {
    return new DscError('FEED_GONE', `${this.#peer} ${why}`, { hint: 'is `dsc feed storage` running there?' })
  }

  #lose(error: Error): void {
    this.#failure ??= error
    this.#isOpen = false
    this.#socket.destroy()
    this.#fetches.failAll(this.#failure)
    this.#manifest?.reject(this.#failure)
    this.#welcomed?.reject(this.#failure)
    this.#welcomed = undefined
  }

  /** Reads into one buffer, so that bytes move from the socket to the arena without another copy. */
  #reading(): NonNullable<TcpNetConnectOpts['onread']> {
    const buffer = allocateForCrc32(READ_BUFFER_BYTES)
    return {
      buffer,
      callback: (count) => {
        try {
          this.#frames.push(buffer.subarray(0, count))
          this.#items?.flush()
        } catch (error) {
          this.#lose(error as Error)
        }
        return true
      },
    }
  }

  #takeControl(head: StorageHead, payload: Buffer): void {
    const { type, request } = head
    switch (type) {
      case STORAGE_MESSAGE.challenge:
        this.#challenge = String(head.challenge)
        this.#sayHello()
        return
      case STORAGE_MESSAGE.welcome:
        this.#enter(head)
        return
      case STORAGE_MESSAGE.manifest:
        this.#manifest?.resolve(payload)
        return
      case STORAGE_MESSAGE.end:
        this.#items?.flush()
        this.#fetches.end(request)
        return
      case STORAGE_MESSAGE.busy:
        this.#fetches.putOff(request, Number(head.afterMs))
        return
      case STORAGE_MESSAGE.goAway:
        this.#lose(this.#gone('is shutting down'))
        return
      case STORAGE_MESSAGE.error:
        this.#lose(this.#refusal(head))
        return
    }
  }

  #sayHello(): void {
    const hello = {
      type: STORAGE_MESSAGE.hello,
      request: 0,
      ...proveToken(this.#token ?? '', this.#challenge),
      fingerprint: this.#options.table?.fingerprint,
    }
    this.#socket.write(formatStorageFrame(hello))
  }

  #enter({ stripe }: StorageHead): void {
    this.#stripe = (stripe as ServedStripe | null) ?? undefined
    this.#isOpen = true
    this.#socket.setTimeout(0)
    this.#welcomed?.resolve(this)
    this.#welcomed = undefined
  }

  #refusal({ code, message }: StorageHead): DscError {
    const isStale = code === 'ERR_STALE'
    return new DscError(
      isStale ? 'FEED_STATE_MISMATCH' : 'FEED_PROTOCOL',
      `${this.#peer} refuses: ${String(message)}`,
      {
        hint: isStale ? 'stage the same version on all nodes' : 'set the same DSC_FEED_TOKEN on both sides',
      },
    )
  }
}
