import type { Codec } from '../../half/codec.js'
import { FixedBytes } from '../../platform/fixed-bytes.js'
import { ExchangeMismatch } from '../failures.js'
import type { FrameSource, ReceivedFrame } from '../links.js'
import { SEGMENT_BYTES } from '../plan/layout.js'
import { type FrameHeader, HEADER_BYTES, parseHeader } from '../wire/frame.js'
import { MEMORY_SLOTS, type PeerMemory } from './host-memory.js'

/** Reads frames from the memory of a rank of this host. The caller pushes headers as they arrive. */
export class MemoryReader implements FrameSource {
  readonly #peer: number
  readonly #memory: PeerMemory
  readonly #acknowledge: () => void
  readonly #payload: Uint8Array
  readonly #address: number
  readonly #headerBytes = new FixedBytes(HEADER_BYTES)
  readonly #headers: FrameHeader[] = []
  #read = 0
  #waiter: PromiseWithResolvers<ReceivedFrame> | undefined
  #failure: Error | undefined

  /** `peer` is the rank that owns `memory`; `acknowledge` tells it that one more of its slots was read. */
  constructor(
    codec: Codec,
    peer: number,
    from: { readonly memory: PeerMemory; readonly acknowledge: () => void },
  ) {
    this.#peer = peer
    this.#memory = from.memory
    this.#acknowledge = from.acknowledge
    this.#address = codec.allocate(SEGMENT_BYTES)
    this.#payload = new Uint8Array(codec.memory, this.#address, SEGMENT_BYTES)
  }

  /** Passes on header bytes that arrived. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && this.#failure === undefined; ) {
      at = this.#headerBytes.fill(bytes, at)
      if (this.#headerBytes.isFull) this.#takeHeader()
    }
    this.#serveWaiter()
  }

  next(): Promise<ReceivedFrame> {
    const waiter = Promise.withResolvers<ReceivedFrame>()
    this.#waiter = waiter
    if (this.#failure === undefined) this.#serveWaiter()
    else waiter.reject(this.#failure)
    return waiter.promise
  }

  fail(error: Error): void {
    this.#failure ??= error
    this.#waiter?.reject(this.#failure)
    this.#waiter = undefined
  }

  #takeHeader(): void {
    const parsed = parseHeader(this.#headerBytes.bytes)
    this.#headerBytes.clear()
    if ('problem' in parsed) this.#refuse(`a frame from rank ${this.#peer} ${parsed.problem}`)
    else if (parsed.header.bytes > SEGMENT_BYTES)
      this.#refuse(`rank ${this.#peer} sent a segment of ${parsed.header.bytes} bytes`)
    else this.#headers.push(parsed.header)
  }

  #serveWaiter(): void {
    const header = this.#waiter && this.#headers.shift()
    if (!header) return
    try {
      this.#memory.read(this.#read % MEMORY_SLOTS, this.#payload.subarray(0, header.bytes))
    } catch (error) {
      this.fail(error as Error)
      return
    }
    this.#read++
    this.#acknowledge()
    this.#waiter?.resolve({ header, address: this.#address })
    this.#waiter = undefined
  }

  #refuse(problem: string): void {
    this.fail(new ExchangeMismatch(problem))
  }
}
