import { crc32 } from 'node:zlib'
import type { Codec } from '../../half/codec.js'
import { FixedBytes } from '../../platform/fixed-bytes.js'
import { ExchangeMismatch } from '../failures.js'
import type { FrameSource, ReceivedFrame } from '../links.js'
import { SEGMENT_BYTES } from '../plan/layout.js'
import { type FrameHeader, HEADER_BYTES, parseHeader } from './frame.js'

/** Maximum segments waiting to be taken; beyond that the connection is not read and TCP holds the sender back. */
export const READER_SLOTS = 4

/**
 * Reads frames from one connection, in order, and assembles them in slots of the codec's memory. The caller pushes
 * bytes as they arrive.
 */
export class FrameReader implements FrameSource {
  readonly #peer: number
  readonly #onResume: () => void
  readonly #memory: Uint8Array
  readonly #slots: readonly number[]
  readonly #headerBytes = new FixedBytes(HEADER_BYTES)
  readonly #ready: ReceivedFrame[] = []
  #leftover: Uint8Array | undefined
  /** The frame whose payload is arriving. */
  #current: { readonly header: FrameHeader; readonly crc: number; readonly address: number } | undefined
  #payloadFilled = 0
  #taken: ReceivedFrame | undefined
  #waiter: PromiseWithResolvers<ReceivedFrame> | undefined
  #failure: Error | undefined

  /** `peer` is the rank the frames come from; `onResume` is called when `push` may be called again. */
  constructor(codec: Codec, peer: number, onResume: () => void) {
    this.#peer = peer
    this.#onResume = onResume
    this.#memory = new Uint8Array(codec.memory)
    this.#slots = Array.from({ length: READER_SLOTS }, () => codec.allocate(SEGMENT_BYTES))
  }

  /** Takes `bytes` that arrived. False: stop reading until `onResume` is called; the rest of `bytes` is kept. */
  push(bytes: Uint8Array): boolean {
    const used = this.#isFull ? 0 : this.#consume(bytes)
    if (this.#failure !== undefined) return true
    if (used < bytes.length) this.#leftover = Uint8Array.from(bytes.subarray(used))
    return this.#leftover === undefined && !this.#isFull
  }

  next(): Promise<ReceivedFrame> {
    this.#taken = undefined
    const pending = Promise.withResolvers<ReceivedFrame>()
    this.#waiter = pending
    this.#serveWaiter()
    if (this.#leftover) {
      const rest = this.#leftover
      this.#leftover = undefined
      const used = this.#consume(rest)
      if (used < rest.length) this.#leftover = rest.subarray(used)
    }
    if (this.#failure !== undefined) pending.reject(this.#failure)
    else if (this.#leftover === undefined && !this.#isFull) this.#onResume()
    return pending.promise
  }

  fail(error: Error): void {
    this.#failure ??= error
    this.#waiter?.reject(this.#failure)
    this.#waiter = undefined
  }

  get #isFull(): boolean {
    return this.#ready.length + (this.#taken ? 1 : 0) >= READER_SLOTS
  }

  /** Consumes bytes until they or the slots run out; returns the number consumed. */
  #consume(bytes: Uint8Array): number {
    let at = 0
    while (at < bytes.length && this.#failure === undefined && !this.#isFull) {
      if (!this.#current) {
        at = this.#headerBytes.fill(bytes, at)
        if (!this.#headerBytes.isFull) break
        this.#startFrame()
        if (!this.#current) break
      }
      const { header, address } = this.#current
      const part = bytes.subarray(at, at + header.bytes - this.#payloadFilled)
      this.#memory.set(part, address + this.#payloadFilled)
      this.#payloadFilled += part.length
      at += part.length
      if (this.#payloadFilled === header.bytes) this.#finishFrame(this.#current)
    }
    return at
  }

  #startFrame(): void {
    const parsed = parseHeader(this.#headerBytes.bytes)
    this.#headerBytes.clear()
    this.#payloadFilled = 0
    if ('problem' in parsed) this.#refuse(`a frame from rank ${this.#peer} ${parsed.problem}`)
    else if (parsed.header.bytes > SEGMENT_BYTES)
      this.#refuse(`rank ${this.#peer} sent a segment of ${parsed.header.bytes} bytes`)
    else this.#current = { ...parsed, address: this.#findFreeSlot() }
  }

  #finishFrame({ header, crc, address }: ReceivedFrame & { readonly crc: number }): void {
    this.#current = undefined
    if (crc32(this.#memory.subarray(address, address + header.bytes)) !== crc)
      this.#refuse(`a segment from rank ${header.rank} was damaged on its way`)
    else {
      this.#ready.push({ header, address })
      this.#serveWaiter()
    }
  }

  #serveWaiter(): void {
    const frame = this.#waiter && this.#ready.shift()
    if (!frame) return
    this.#taken = frame
    this.#waiter?.resolve(frame)
    this.#waiter = undefined
  }

  #findFreeSlot(): number {
    const busy = new Set([this.#taken?.address, ...this.#ready.map(({ address }) => address)])
    const free = this.#slots.find((address) => !busy.has(address))
    if (free === undefined) throw new Error('a slot is always free: bytes are consumed only while one is')
    return free
  }

  #refuse(problem: string): void {
    this.fail(new ExchangeMismatch(problem))
  }
}
