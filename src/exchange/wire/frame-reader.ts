import { crc32 } from 'node:zlib'
import type { Codec } from '../../half/codec.js'
import { ExchangeMismatch } from '../failures.js'
import { SEGMENT_BYTES } from '../plan/layout.js'
import { type FrameHeader, HEADER_BYTES, parseHeader } from './frame.js'

/** Segments that may wait to be taken; then the connection is no longer read and TCP holds the sender back. */
export const READER_SLOTS = 4

/** A frame whose payload lies in the codec's memory until the next call of `next`. */
export interface ReceivedFrame {
  readonly header: FrameHeader
  readonly address: number
}

/** Takes frames from one connection, in order. */
export interface FrameReader {
  /** Gives `bytes` that arrived. False: stop reading until `onResume` is called; what is left over is kept. */
  readonly push: (bytes: Uint8Array) => boolean
  /** The next frame; frees the one before. Rejects when the reader fails or a frame is damaged. */
  readonly next: () => Promise<ReceivedFrame>
  readonly fail: (error: Error) => void
}

/** Assembles frames in slots of `codec`'s memory. `peer` is the rank they come from. */
export function createFrameReader(codec: Codec, peer: number, onResume: () => void): FrameReader {
  const slots = Array.from({ length: READER_SLOTS }, () => codec.allocate(SEGMENT_BYTES))
  const memory = new Uint8Array(codec.memory)
  const headerBytes = Buffer.alloc(HEADER_BYTES)
  const ready: ReceivedFrame[] = []
  let leftover: Uint8Array | undefined
  let headerFilled = 0
  let current: { readonly header: FrameHeader; readonly crc: number; readonly address: number } | undefined
  let payloadFilled = 0
  let taken: ReceivedFrame | undefined
  let waiter: PromiseWithResolvers<ReceivedFrame> | undefined
  let failure: Error | undefined

  const fail = (error: Error) => {
    failure ??= error
    waiter?.reject(failure)
    waiter = undefined
  }
  const startFrame = (address: number) => {
    const parsed = parseHeader(headerBytes)
    if ('problem' in parsed) return fail(new ExchangeMismatch(`a frame from rank ${peer} ${parsed.problem}`))
    if (parsed.header.bytes > SEGMENT_BYTES) {
      return fail(new ExchangeMismatch(`rank ${peer} sent a segment of ${parsed.header.bytes} bytes`))
    }
    current = { ...parsed, address }
    payloadFilled = 0
  }
  const finishFrame = ({ header, crc, address }: NonNullable<typeof current>) => {
    current = undefined
    headerFilled = 0
    if (crc32(memory.subarray(address, address + header.bytes)) !== crc) {
      return fail(new ExchangeMismatch(`a segment from rank ${header.rank} was damaged on its way`))
    }
    ready.push({ header, address })
    if (waiter) {
      taken = ready.shift()
      waiter.resolve(taken as ReceivedFrame)
      waiter = undefined
    }
  }
  /** Consumes bytes until they or the slots run out; gives back how many were used. */
  const consume = (bytes: Uint8Array): number => {
    let at = 0
    while (at < bytes.length && failure === undefined) {
      if (!current) {
        const part = bytes.subarray(at, at + HEADER_BYTES - headerFilled)
        headerBytes.set(part, headerFilled)
        headerFilled += part.length
        at += part.length
        if (headerFilled < HEADER_BYTES) break
        const busy = new Set([taken?.address, ...ready.map(({ address }) => address)])
        const free = slots.find((address) => !busy.has(address))
        if (free === undefined) throw new Error('a slot is always free: push refuses before')
        startFrame(free)
      }
      if (!current) break
      const part = bytes.subarray(at, at + current.header.bytes - payloadFilled)
      memory.set(part, current.address + payloadFilled)
      payloadFilled += part.length
      at += part.length
      if (payloadFilled === current.header.bytes) finishFrame(current)
      if (ready.length + (taken ? 1 : 0) >= READER_SLOTS) break
    }
    return at
  }
  const isFull = () => ready.length + (taken ? 1 : 0) >= READER_SLOTS
  return {
    push(bytes) {
      const used = isFull() ? 0 : consume(bytes)
      if (failure !== undefined) return true
      if (used < bytes.length) leftover = Uint8Array.from(bytes.subarray(used))
      return leftover === undefined && !isFull()
    },
    next() {
      taken = undefined
      const pending = Promise.withResolvers<ReceivedFrame>()
      if (ready.length === 0) waiter = pending
      if (leftover) {
        const rest = leftover
        leftover = undefined
        const used = consume(rest)
        if (used < rest.length) leftover = rest.subarray(used)
      }
      if (waiter === undefined && taken === undefined && ready.length > 0) {
        taken = ready.shift()
        pending.resolve(taken as ReceivedFrame)
      }
      if (failure !== undefined) pending.reject(failure)
      else if (leftover === undefined && !isFull()) onResume()
      return pending.promise
    },
    fail,
  }
}
