import type { Socket, TcpNetConnectOpts } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import { openSampleTable, type SampleTable } from '../samples/sample-table.js'
import type { OnSample } from '../sources/sample-source.js'
import { createFrameParser } from './frame-parser.js'
import { createItemReceiver, type ExpectedItems } from './item-receiver.js'
import { openStorageSocket, type StorageTls } from './open-socket.js'
import { proveToken } from './storage-server.js'
import { formatGetBatch, formatStorageFrame, STORAGE_MESSAGE } from './storage-wire.js'

export interface StorageAddress {
  readonly host: string
  readonly port: number
}

export interface StorageClientOptions {
  readonly address: StorageAddress
  readonly token: string | undefined
  /** Absent: not encrypted. */
  readonly tls?: StorageTls | undefined
  /** The manifest both sides must have; absent while it is still to be fetched. */
  readonly table?: SampleTable | undefined
  /** Where samples are written; absent while only the manifest is fetched. */
  readonly arenaFd?: number | undefined
  /** Default 2 s. */
  readonly connectTimeoutMs?: number
}

/** Samples to fetch into the arena. */
export interface FetchRequest {
  readonly samples: Uint32Array
  readonly offsets: Float64Array
  readonly maxBytes: number
  readonly deadlineMs: number
  readonly onSample: OnSample
}

/** A request on its way. */
export interface Fetch {
  /** Resolves at the end, with the indexes that were not sent; rejects when the connection is lost or too slow. */
  readonly done: Promise<readonly number[]>
  /** From now on bytes of this sample are thrown away: someone else writes its place. */
  abandon(index: number): void
  /** Tells the server to stop, and throws away what still comes. `done` resolves now, with what had not come. */
  cancel(): void
}

/** One connection to a storage node. */
export interface StorageClient {
  readonly isOpen: boolean
  readonly stripe: { readonly index: number; readonly count: number } | undefined
  readonly fingerprint: string
  fetch(request: FetchRequest): Fetch
  fetchManifest(): Promise<SampleTable>
  close(): void
}

interface Pending {
  readonly request: FetchRequest
  readonly expected: ExpectedItems
  resolve(notSent: readonly number[]): void
  reject(error: Error): void
  timer: NodeJS.Timeout
  /** The server has answered that it is busy, and nothing else yet. */
  isPutOff: boolean
}

const READ_BUFFER_BYTES = 256 * 1024

/** Connects, proves the token and compares manifests. */
export function connectStorage(options: StorageClientOptions): Promise<StorageClient> {
  const { address, table, arenaFd } = options
  const peer = `storage node ${address.host}:${address.port}`
  const pending = new Map<number, Pending>()
  let nextRequest = 1
  const items = table && arenaFd !== undefined ? createItemReceiver(table, arenaFd) : undefined
  let welcome: { fingerprint: string; stripe: { index: number; count: number } | null } | undefined
  let manifestWaiter: ((bytes: Buffer) => void) | undefined
  let isOpen = false
  let failure: Error | undefined

  return new Promise<StorageClient>((resolve, reject) => {
    const lose = (error: Error) => {
      failure ??= error
      isOpen = false
      socket.destroy()
      for (const each of pending.values()) {
        clearTimeout(each.timer)
        each.reject(failure)
      }
      pending.clear()
      reject(failure)
    }
    const gone = (why: string) =>
      new DscError('FEED_GONE', `${peer} ${why}`, { hint: 'is `dsc feed storage` running there?' })

    const client: StorageClient = {
      get isOpen() {
        return isOpen
      },
      get stripe() {
        return welcome?.stripe ?? undefined
      },
      get fingerprint() {
        return welcome!.fingerprint
      },
      fetch(request) {
        const id = nextRequest++
        const open = new Map<number, number[]>()
        for (const [i, sample] of request.samples.entries()) {
          const indexes = open.get(sample)
          if (indexes) indexes.push(i)
          else open.set(sample, [i])
        }
        const abandoned = new Set<number>()
        const done = new Promise<readonly number[]>((resolveDone, rejectDone) => {
          if (!isOpen) return rejectDone(failure ?? gone('is not connected'))
          const expire = () => {
            const each = pending.get(id)
            if (!each?.isPutOff) return lose(gone(`has not answered within ${request.deadlineMs} ms`))
            rejectDone(gone(`has been busy for ${request.deadlineMs} ms`)) // it answers other requests meanwhile
            cancel(id)
          }
          const timer = setTimeout(expire, request.deadlineMs)
          pending.set(id, {
            request,
            expected: { ...request, open, notSent: [], abandoned },
            resolve: resolveDone,
            reject: rejectDone,
            timer,
            isPutOff: false,
          })
          send(id)
        })
        return { done, abandon: (index) => void abandoned.add(index), cancel: () => cancel(id) }
      },
      async fetchManifest() {
        const bytes = await new Promise<Buffer>((resolveBytes, rejectBytes) => {
          manifestWaiter = resolveBytes
          socket.once('close', () => rejectBytes(failure ?? gone('hung up')))
          socket.write(formatStorageFrame(STORAGE_MESSAGE.getManifest, 0, new Uint8Array()))
        })
        return openSampleTable(bytes)
      },
      close() {
        lose(gone('was closed'))
      },
    }
    const openIndexes = ({ notSent, open }: ExpectedItems) => [...notSent, ...[...open.values()].flat()]
    const cancel = (id: number) => {
      const each = pending.get(id)
      if (!each) return
      pending.delete(id)
      clearTimeout(each.timer)
      socket.write(formatStorageFrame(STORAGE_MESSAGE.cancel, id, new Uint8Array()))
      each.resolve(openIndexes(each.expected))
    }
    const send = (id: number) => {
      const each = pending.get(id)
      if (!each || !isOpen) return
      const { samples, maxBytes, deadlineMs } = each.request
      socket.write(formatGetBatch(id, samples, maxBytes, deadlineMs))
    }

    const takeControl = (type: number, request: number, payload: Buffer) => {
      const parsed = () => JSON.parse(payload.toString()) as Record<string, unknown>
      switch (type) {
        case STORAGE_MESSAGE.challenge: {
          const mac = proveToken(options.token ?? '', String(parsed().challenge))
          const hello = { mac, ...(table && { fingerprint: table.fingerprint }) }
          socket.write(formatStorageFrame(STORAGE_MESSAGE.hello, 0, Buffer.from(JSON.stringify(hello))))
          return
        }
        case STORAGE_MESSAGE.welcome:
          welcome = parsed() as unknown as NonNullable<typeof welcome>
          isOpen = true
          socket.setTimeout(0)
          resolve(client)
          return
        case STORAGE_MESSAGE.manifest:
          manifestWaiter?.(payload)
          return
        case STORAGE_MESSAGE.end: {
          const each = pending.get(request)
          if (!each) return
          pending.delete(request)
          clearTimeout(each.timer)
          items?.flush()
          each.resolve(openIndexes(each.expected))
          return
        }
        case STORAGE_MESSAGE.busy: {
          const each = pending.get(request)
          if (each) each.isPutOff = true
          setTimeout(() => send(request), payload.readUInt32LE(0))
          return
        }
        case STORAGE_MESSAGE.goAway:
          lose(gone('is shutting down'))
          return
        case STORAGE_MESSAGE.error: {
          const { code, message } = parsed()
          const isStale = code === 'ERR_STALE'
          lose(
            new DscError(
              isStale ? 'FEED_STATE_MISMATCH' : 'FEED_PROTOCOL',
              `${peer} refuses: ${String(message)}`,
              {
                hint: isStale
                  ? 'stage the same version on all nodes'
                  : 'set the same DSC_FEED_TOKEN on both sides',
              },
            ),
          )
        }
      }
    }
    const parse = createFrameParser(peer, {
      onItems(request, bytes) {
        const each = pending.get(request)
        each?.timer.refresh() // the deadline is for silence: a slow node that goes on sending is not given up
        if (each) each.isPutOff = false
        items?.take(each?.expected, bytes)
      },
      onControl: takeControl,
    })

    const buffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES)
    const socketOptions: TcpNetConnectOpts = {
      host: address.host,
      port: address.port,
      noDelay: true,
      onread: {
        buffer,
        callback: (count) => {
          try {
            parse(buffer.subarray(0, count))
            items?.flush()
          } catch (error) {
            lose(error as Error)
          }
          return true
        },
      },
    }
    const socket: Socket = openStorageSocket(socketOptions, options.tls)
    socket.setTimeout(options.connectTimeoutMs ?? 2000, () => lose(gone('does not answer')))
    socket.on('error', (error) => lose(gone(`cannot be reached: ${error.message}`)))
    socket.on('close', () => lose(gone('hung up')))
  })
}
