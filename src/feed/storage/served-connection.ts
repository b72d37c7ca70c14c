import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { SampleTable } from '../../samples/sample-table.js'
import { isProof } from './prove-token.js'
import type { ServedStripe } from './storage-client.js'
import type { StorageOrder } from './storage-thread.js'
import {
  formatStorageFrame,
  ITEM_BYTES,
  ITEM_STATUS,
  parseGetBatch,
  readStorageFrames,
  STORAGE_MESSAGE,
  type StorageHead,
} from './storage-wire.js'

/** Finds the secrets that prove a pass, and how long it is still good. Undefined: it is not. */
export type JudgePass = (
  pass: string,
) => { readonly secrets: readonly string[]; readonly leftMs: number } | undefined

/** State that the connections of a storage node share. */
export interface ServedSamples {
  readonly table: SampleTable
  readonly stripe: ServedStripe | undefined
  readonly token: string | undefined
  readonly judgePass: JudgePass | undefined
  readonly maxPendingBytes: number
  /** Bytes requested but not yet sent. */
  pendingBytes: number
  readonly counts: {
    requests: number
    samples: number
    bytes: number
    /** Bytes read that were no longer wanted by then. */
    unwantedBytes: number
    busy: number
    /** Requests that clients gave up. */
    cancelled: number
  }
  order(order: StorageOrder): void
}

/** Maximum length of a client's frame: a client requests some hundred thousand samples at most. */
const MAX_FRAME_BYTES = 2 ** 24
/** How long a client waits before it retries after "busy", in ms. */
const RETRY_MS = 20

/** A storage node's end of one connection. */
export class ServedConnection {
  readonly #socket: Socket
  readonly #owner: number
  readonly #served: ServedSamples
  readonly #challenge = randomBytes(16).toString('hex')
  /** Request → bytes that count as pending until its END has left. */
  readonly #pending = new Map<number, number>()
  /** Whether the client has proved that it knows the token, or has a pass. */
  #isKnown = false
  /** Ends the connection with its pass. */
  #passTimer: NodeJS.Timeout | undefined

  constructor(socket: Socket, owner: number, served: ServedSamples) {
    this.#socket = socket
    this.#owner = owner
    this.#served = served
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.write(
      formatStorageFrame({ type: STORAGE_MESSAGE.challenge, request: 0, challenge: this.#challenge }),
    )
    const frames = readStorageFrames('a client', {
      maxControlBytes: MAX_FRAME_BYTES,
      onItems: () => this.#refuse('FEED_PROTOCOL', 'clients send no items'),
      onControl: (head, payload) => this.#handle(head, payload),
    })
    socket.on('data', (chunk: Buffer) => {
      try {
        frames.push(chunk)
      } catch {
        this.#refuse('FEED_PROTOCOL', 'a frame that is not DSCB')
      }
    })
  }

  /** Whether the client waits for an answer. */
  get isOwed(): boolean {
    return this.#pending.size > 0
  }

  /** Sends a frame of the answer to `request`; returns false if it is no longer wanted. */
  send(request: number, frame: Buffer, onSent: () => void): boolean {
    if (!this.#pending.has(request)) return false
    this.#served.counts.bytes += frame.length
    this.#socket.write(frame, onSent)
    return true
  }

  /** Completes the answer to `request`. */
  end(request: number, sentCount: number): void {
    if (!this.#pending.has(request)) return
    const frame = formatStorageFrame({ type: STORAGE_MESSAGE.end, request, sent: sentCount })
    this.#socket.write(frame, () => this.#forget(request))
  }

  /** Cleans up after the socket has closed. */
  drop(): void {
    clearTimeout(this.#passTimer)
    for (const request of [...this.#pending.keys()]) this.#forget(request)
    this.#served.order({ kind: 'cancel', owner: this.#owner })
  }

  #refuse(code: string, message: string): void {
    this.#socket.end(formatStorageFrame({ type: STORAGE_MESSAGE.error, request: 0, code, message }))
  }

  #handle(head: StorageHead, payload: Buffer): void {
    const { type, request } = head
    if (type === STORAGE_MESSAGE.hello) {
      this.#greet(head)
      return
    }
    if (!this.#isKnown) {
      this.#refuse('FEED_PROTOCOL', 'HELLO comes first')
      return
    }
    switch (type) {
      case STORAGE_MESSAGE.getBatch:
        this.#getBatch(head, payload)
        return
      case STORAGE_MESSAGE.cancel:
        this.#cancel(request)
        return
      case STORAGE_MESSAGE.ping:
        return void this.#socket.write(formatStorageFrame({ type: STORAGE_MESSAGE.pong, request }))
      case STORAGE_MESSAGE.getManifest: {
        const { bytes } = this.#served.table
        return void this.#socket.write(formatStorageFrame({ type: STORAGE_MESSAGE.manifest, request }, bytes))
      }
      default:
        this.#refuse('FEED_PROTOCOL', `message type ${type} is unknown`)
        return
    }
  }

  /** A client may greet again, with a later pass. */
  #greet(head: StorageHead): void {
    const { fingerprint } = head
    const { table, stripe, maxPendingBytes } = this.#served
    if (!this.#isProved(head)) {
      this.#refuse('FEED_PROTOCOL', 'the token is wrong')
      return
    }
    if (fingerprint !== undefined && fingerprint !== table.fingerprint) {
      this.#refuse('ERR_STALE', `this node has version ${table.fingerprint}, not ${String(fingerprint)}`)
      return
    }
    this.#isKnown = true
    const welcome = {
      type: STORAGE_MESSAGE.welcome,
      request: 0,
      fingerprint: table.fingerprint,
      count: table.count,
      stripe: stripe ?? null,
      maxPendingBytes,
    }
    this.#socket.write(formatStorageFrame(welcome))
  }

  #isProved({ mac, pass }: StorageHead): boolean {
    const { token, judgePass } = this.#served
    if (token === undefined) return true
    const isRight = (secret: string) => isProof(String(mac ?? ''), secret, this.#challenge)
    if (pass === undefined) return isRight(token)
    const judged = judgePass?.(String(pass))
    if (!judged?.secrets.some(isRight)) return false
    clearTimeout(this.#passTimer)
    this.#passTimer = setTimeout(() => this.#refuse('FEED_PROTOCOL', 'the pass has expired'), judged.leftMs)
    this.#passTimer.unref()
    return true
  }

  #getBatch(head: StorageHead, payload: Buffer): void {
    const { request } = head
    const { table, counts, maxPendingBytes, pendingBytes } = this.#served
    const { samples, maxBytes } = parseGetBatch(head, payload)
    const here = samples.filter((sample) => this.#has(sample))
    const bytes = here.reduce((sum, sample) => sum + table.lengths[sample]!, 0)
    if (pendingBytes > 0 && pendingBytes + bytes > maxPendingBytes) {
      counts.busy++
      this.#socket.write(formatStorageFrame({ type: STORAGE_MESSAGE.busy, request, afterMs: RETRY_MS }))
      return
    }
    if (this.#pending.has(request)) throw new Error(`request ${request} is on its way already`)
    counts.requests++
    counts.samples += here.length
    this.#served.pendingBytes += bytes
    this.#pending.set(request, bytes)
    const absent = samples.filter((sample) => !this.#has(sample))
    if (absent.length > 0) this.#socket.write(formatMissing(request, absent))
    this.#served.order({ kind: 'job', owner: this.#owner, request, samples: here, maxBytes })
  }

  #has(sample: number): boolean {
    const { table, stripe } = this.#served
    return sample < table.count && (!stripe || sample % stripe.count === stripe.index)
  }

  #cancel(request: number): void {
    this.#served.counts.cancelled++
    if (!this.#pending.has(request)) return // it was sent completely
    this.#forget(request)
    this.#served.order({ kind: 'cancel', owner: this.#owner, request })
  }

  #forget(request: number): void {
    this.#served.pendingBytes -= this.#pending.get(request) ?? 0
    this.#pending.delete(request)
  }
}

function formatMissing(request: number, samples: Uint32Array): Buffer {
  const payload = Buffer.alloc(ITEM_BYTES * samples.length)
  for (const [i, sample] of samples.entries()) {
    payload.writeUInt32LE(sample, ITEM_BYTES * i)
    payload[ITEM_BYTES * i + 8] = ITEM_STATUS.missing
  }
  return formatStorageFrame({ type: STORAGE_MESSAGE.items, request }, payload)
}
