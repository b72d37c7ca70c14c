import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { openOrClose } from '../../failure/closers.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import type { SendRule } from '../../platform/send-rule.js'
import type { SampleFolder } from '../../samples/index-samples.js'
import { type JudgePass, ServedConnection, type ServedSamples } from './served-connection.js'
import type { ServedStripe } from './storage-client.js'
import type { StorageOrder, StorageReply } from './storage-thread.js'
import { formatStorageFrame, STORAGE_MESSAGE } from './storage-wire.js'

/** The samples that a storage node serves, its address, and its clients. */
export interface StorageServerOptions {
  readonly folder: Pick<SampleFolder, 'root' | 'table'>
  /** Which files may be sent if the table is not this node's own; absent: all. */
  readonly rule?: SendRule | undefined
  /** Answers only for samples i with i mod count = index; absent: for all. */
  readonly stripe?: ServedStripe | undefined
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  /** Clients must prove that they know this token. */
  readonly token?: string | undefined
  /** Judges a pass that a client shows instead of the token; absent: none is good. */
  readonly judgePass?: JudgePass | undefined
  /** Certificate and key (PEM); absent: not encrypted. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  /** Bytes requested but not yet sent, over all clients, above which a request must wait. Default 256 MiB. */
  readonly maxPendingBytes?: number
  /** How long a client that waits for an answer may take nothing before it is cut off. Default 60 s. */
  readonly idleTimeoutMs?: number
}

/** How long clients may take to receive the GOAWAY before they are cut off, in ms. */
const GO_AWAY_MS = 1000

/** A storage node: answers requests for batches of samples. */
export class StorageServer {
  readonly #served: ServedSamples
  readonly #server: Server
  readonly #thread: BackgroundThread<StorageOrder, StorageReply>
  readonly #connections = new Map<number, ServedConnection>()
  readonly #sockets = new Set<Socket>()
  readonly #idleTimeoutMs: number
  #address: AddressInfo | undefined
  #nextOwner = 0

  private constructor(options: StorageServerOptions) {
    const {
      folder,
      stripe,
      token,
      judgePass,
      maxPendingBytes = 256 * 2 ** 20,
      idleTimeoutMs = 60_000,
    } = options
    this.#idleTimeoutMs = idleTimeoutMs
    this.#thread = new BackgroundThread(new URL('../../storage-thread.cjs', import.meta.url), {
      data: { root: folder.root, tableBytes: folder.table.bytes, rule: options.rule },
      onReply: (reply: StorageReply) => this.#take(reply),
      onFailure: (error) => {
        throw error
      },
    })
    this.#served = {
      table: folder.table,
      stripe,
      token,
      judgePass,
      maxPendingBytes,
      pendingBytes: 0,
      counts: { requests: 0, samples: 0, bytes: 0, unwantedBytes: 0, busy: 0, cancelled: 0 },
      order: (order) => this.#thread.post(order),
    }
    const accept = (socket: Socket) => this.#accept(socket)
    this.#server = options.tls
      ? createTlsServer({ ...options.tls, minVersion: 'TLSv1.3' }, accept)
      : createServer(accept)
  }

  /** Starts listening; rejects like `net` if that fails. */
  static async open(options: StorageServerOptions): Promise<StorageServer> {
    return openOrClose(async (closers) => {
      const server = new StorageServer(options)
      closers.add(() => server.#thread.stop())
      await server.#listen(options.host, options.port)
      return server
    })
  }

  get host(): string {
    return this.#address!.address
  }

  get port(): number {
    return this.#address!.port
  }

  get counts(): Readonly<ServedSamples['counts']> {
    return this.#served.counts
  }

  /** Bytes requested but not yet sent. */
  get pendingBytes(): number {
    return this.#served.pendingBytes
  }

  get connectionCount(): number {
    return this.#sockets.size
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) {
      socket.write(formatStorageFrame({ type: STORAGE_MESSAGE.goAway, request: 0 }))
      socket.destroySoon()
    }
    const cutOff = setTimeout(() => this.#sockets.forEach((socket) => void socket.destroy()), GO_AWAY_MS)
    await new Promise((resolve) => this.#server.close(resolve))
    clearTimeout(cutOff)
    await this.#thread.stop()
  }

  async #listen(host: string, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, resolve)
    })
    this.#address = this.#server.address() as AddressInfo
  }

  #accept(socket: Socket): void {
    const owner = this.#nextOwner++
    const connection = new ServedConnection(socket, owner, this.#served)
    this.#sockets.add(socket)
    this.#connections.set(owner, connection)
    socket.setTimeout(this.#idleTimeoutMs, () => connection.isOwed && socket.destroy())
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#connections.delete(owner)
      connection.drop()
    })
  }

  /** Passes the thread's replies to their connection, if it still exists and wants them. */
  #take(reply: StorageReply): void {
    const connection = this.#connections.get(reply.owner)
    if (reply.kind === 'end') {
      connection?.end(reply.request, reply.sent)
      return
    }
    const { owner, request, frame, length } = reply
    const recycle = () => this.#thread.post({ kind: 'recycled', owner, frame, length }, [frame])
    if (connection?.send(request, Buffer.from(frame, 0, length), recycle)) return
    this.#served.counts.unwantedBytes += length
    recycle()
  }
}
