import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { Worker } from 'node:worker_threads'
import type { SampleFolder } from '../samples/index-samples.js'
import type { StorageOrder, StorageReply } from './storage-thread.js'
import {
  formatStorageFrame,
  HEADER_BYTES,
  ITEM_BYTES,
  ITEM_STATUS,
  parseGetBatch,
  parseHeader,
  STORAGE_MESSAGE,
} from './storage-wire.js'

export interface StorageServerOptions {
  readonly folder: Pick<SampleFolder, 'root' | 'table'>
  /** Answers only for samples i with i mod count = index; absent: for all. */
  readonly stripe?: { readonly index: number; readonly count: number } | undefined
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  /** Clients must prove that they know it. */
  readonly token?: string | undefined
  /** Certificate and key (PEM); absent: not encrypted. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  /** Bytes asked for but not yet sent, of all clients, above which a request is put off. Default 256 MiB. */
  readonly maxPendingBytes?: number
  /** A client that has asked and takes nothing for so long is cut off. Default 60 s. */
  readonly idleTimeoutMs?: number
}

/** A storage node: answers requests for batches of samples. */
export interface StorageServer {
  readonly host: string
  readonly port: number
  readonly counts: Readonly<{
    requests: number
    samples: number
    bytes: number
    /** Read, but by then no longer wanted. */
    unwantedBytes: number
    busy: number
    /** Requests that clients gave up. */
    cancelled: number
  }>
  /** Bytes asked for but not yet sent. */
  readonly pendingBytes: () => number
  readonly connections: () => number
  close(): Promise<void>
}

/** Clients that do not take the GOAWAY within this time are cut off, ms. */
const GO_AWAY_MS = 1000

/** What a client computes from the token and the server's challenge. */
export function proveToken(token: string, challenge: string): string {
  return createHmac('sha256', token).update(`dscb1:${challenge}`).digest('hex')
}

interface Connection {
  readonly socket: Socket
  /** Request → bytes that count as pending until its END has left. */
  readonly pending: Map<number, number>
}

export async function openStorageServer(options: StorageServerOptions): Promise<StorageServer> {
  const { folder, stripe, token, maxPendingBytes = 256 * 2 ** 20, idleTimeoutMs = 60_000 } = options
  const { table, root } = folder
  const counts = { requests: 0, samples: 0, bytes: 0, unwantedBytes: 0, busy: 0, cancelled: 0 }
  const connections = new Map<number, Connection>()
  let nextOwner = 0
  let pendingBytes = 0
  const worker = new Worker(new URL('./storage-thread.js', import.meta.url), {
    workerData: { root, tableBytes: table.bytes },
  })
  worker.unref()
  const order = (each: StorageOrder, transfer: readonly ArrayBuffer[] = []) =>
    worker.postMessage(each, transfer)
  worker.on('message', (reply: StorageReply) => {
    const connection = connections.get(reply.owner)
    const isWanted = connection?.pending.has(reply.request)
    if (reply.kind === 'end') {
      if (!connection || !isWanted) return
      const sent = Buffer.alloc(4)
      sent.writeUInt32LE(reply.sent, 0)
      const end = formatStorageFrame(STORAGE_MESSAGE.end, reply.request, sent)
      connection.socket.write(end, () => dropPending(connection, reply.request))
      return
    }
    const { owner, frame, length } = reply
    const recycle = () => order({ kind: 'recycled', owner, frame, length }, [frame])
    if (!connection || !isWanted) {
      counts.unwantedBytes += length
      return recycle()
    }
    counts.bytes += length
    connection.socket.write(Buffer.from(frame, 0, length), recycle)
  })

  const welcome = () => ({
    proto: 1,
    fingerprint: table.fingerprint,
    count: table.count,
    stripe: stripe ?? null,
    maxPendingBytes,
  })
  const getBatch = (owner: number, connection: Connection, request: number, payload: Buffer) => {
    const { samples, maxBytes } = parseGetBatch(payload)
    const isHere = (sample: number) =>
      sample < table.count && (!stripe || sample % stripe.count === stripe.index)
    const here = samples.filter(isHere)
    const bytes = here.reduce((sum, sample) => sum + table.lengths[sample]!, 0)
    if (pendingBytes > 0 && pendingBytes + bytes > maxPendingBytes) {
      counts.busy++
      const retryMs = Buffer.alloc(4)
      retryMs.writeUInt32LE(20, 0)
      connection.socket.write(formatStorageFrame(STORAGE_MESSAGE.busy, request, retryMs))
      return
    }
    if (connection.pending.has(request)) throw new Error(`request ${request} is on its way already`)
    counts.requests++
    counts.samples += here.length
    pendingBytes += bytes
    connection.pending.set(request, bytes)
    const absent = samples.filter((sample) => !isHere(sample))
    if (absent.length > 0) connection.socket.write(formatMissing(request, absent))
    order({ kind: 'job', owner, request, samples: here, maxBytes })
  }
  const dropPending = (connection: Connection, request: number) => {
    pendingBytes -= connection.pending.get(request) ?? 0
    connection.pending.delete(request)
  }
  const cancel = (owner: number, connection: Connection, request: number) => {
    counts.cancelled++
    if (!connection.pending.has(request)) return // all of it has been sent
    dropPending(connection, request)
    order({ kind: 'cancel', owner, request })
  }

  const serve = (socket: Socket) => {
    const owner = nextOwner++
    const connection: Connection = { socket, pending: new Map() }
    const challenge = randomBytes(16).toString('hex')
    let isKnown = false
    let rest: Buffer = Buffer.alloc(0)
    const refuse = (code: string, message: string) =>
      socket.end(formatStorageFrame(STORAGE_MESSAGE.error, 0, Buffer.from(JSON.stringify({ code, message }))))
    const hello = (payload: Buffer) => {
      const { mac, fingerprint } = JSON.parse(payload.toString()) as { mac?: string; fingerprint?: string }
      const expected = Buffer.from(proveToken(token ?? '', challenge))
      const given = Buffer.from(String(mac ?? ''))
      if (token !== undefined && (given.length !== expected.length || !timingSafeEqual(given, expected)))
        return refuse('FEED_PROTOCOL', 'the token is wrong')
      if (fingerprint !== undefined && fingerprint !== table.fingerprint)
        return refuse('ERR_STALE', `this node has version ${table.fingerprint}, not ${fingerprint}`)
      isKnown = true
      connections.set(owner, connection)
      socket.write(formatStorageFrame(STORAGE_MESSAGE.welcome, 0, Buffer.from(JSON.stringify(welcome()))))
    }
    const handle = (type: number, request: number, payload: Buffer) => {
      if (type === STORAGE_MESSAGE.hello) return hello(payload)
      if (!isKnown) return refuse('FEED_PROTOCOL', 'HELLO comes first')
      if (type === STORAGE_MESSAGE.getBatch) getBatch(owner, connection, request, payload)
      else if (type === STORAGE_MESSAGE.cancel) cancel(owner, connection, request)
      else if (type === STORAGE_MESSAGE.ping)
        socket.write(formatStorageFrame(STORAGE_MESSAGE.pong, request, new Uint8Array()))
      else if (type === STORAGE_MESSAGE.getManifest)
        socket.write(formatStorageFrame(STORAGE_MESSAGE.manifest, request, table.bytes))
      else refuse('FEED_PROTOCOL', `message type ${type} is unknown`)
    }
    socket.setNoDelay(true)
    socket.setTimeout(idleTimeoutMs, () => connection.pending.size > 0 && socket.destroy())
    socket.write(formatStorageFrame(STORAGE_MESSAGE.challenge, 0, Buffer.from(JSON.stringify({ challenge }))))
    socket.on('data', (chunk: Buffer) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      try {
        while (rest.length >= HEADER_BYTES) {
          const header = parseHeader(rest, 'a client')
          if (header.length > 2 ** 24) return refuse('FEED_PROTOCOL', `a frame of ${header.length} bytes`)
          if (rest.length < HEADER_BYTES + header.length) return
          const payload = rest.subarray(HEADER_BYTES, HEADER_BYTES + header.length)
          rest = rest.subarray(HEADER_BYTES + header.length)
          handle(header.type, header.request, payload)
        }
      } catch {
        refuse('FEED_PROTOCOL', 'a frame that is not DSCB')
      }
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      for (const request of [...connection.pending.keys()]) dropPending(connection, request)
      connections.delete(owner)
      order({ kind: 'cancel', owner })
    })
  }

  const sockets = new Set<Socket>()
  const accept = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    serve(socket)
  }
  const server = options.tls
    ? createTlsServer({ ...options.tls, minVersion: 'TLSv1.3' }, accept)
    : createServer(accept)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  const address = server.address() as AddressInfo
  return {
    host: address.address,
    port: address.port,
    counts,
    connections: () => sockets.size,
    pendingBytes: () => pendingBytes,
    async close() {
      for (const socket of sockets) {
        socket.write(formatStorageFrame(STORAGE_MESSAGE.goAway, 0, new Uint8Array()))
        socket.destroySoon()
      }
      const cutOff = setTimeout(() => sockets.forEach((socket) => void socket.destroy()), GO_AWAY_MS)
      await new Promise((resolve) => server.close(resolve))
      clearTimeout(cutOff)
      await worker.terminate()
    },
  }
}

function formatMissing(request: number, samples: Uint32Array): Buffer {
  const payload = Buffer.alloc(ITEM_BYTES * samples.length)
  for (const [i, sample] of samples.entries()) {
    payload.writeUInt32LE(sample, ITEM_BYTES * i)
    payload[ITEM_BYTES * i + 8] = ITEM_STATUS.missing
  }
  return formatStorageFrame(STORAGE_MESSAGE.items, request, payload)
}
