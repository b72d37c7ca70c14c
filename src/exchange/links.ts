import type { Levels } from './plan/find-levels.js'
import type { FrameHeader } from './wire/frame.js'

/** A frame whose payload stays in the codec's memory until the next call of `next`. */
export interface ReceivedFrame {
  readonly header: FrameHeader
  readonly address: number
}

/** Frames from one rank, in order. */
export interface FrameSource {
  /** The next frame; frees the previous one. Rejects when the source fails or a frame is damaged. */
  readonly next: () => Promise<ReceivedFrame>
  /** Ends the source with this error, which waiting callers receive. */
  readonly fail: (error: Error) => void
}

/** Sends frames to one rank, or the same frames to several. */
export interface FrameSink {
  /** Queues a frame. The payload is not copied and must not change until `flushed` resolves. */
  readonly send: (header: FrameHeader, payload: Uint8Array) => void
  /** Resolves when no sent frame needs its payload any more; rejects when the sink fails. */
  readonly flushed: () => Promise<void>
  /** Ends the sink with this error, which waiting callers receive. */
  readonly fail: (error: Error) => void
}

/** The connections of one rank. */
export interface Links {
  readonly rank: number
  readonly levels: Levels
  /** Network connections, by rank; empty on ranks that are not on the network. */
  readonly writers: ReadonlyMap<number, FrameSink>
  readonly readers: ReadonlyMap<number, FrameSource>
  /** Through the host's memory: from its first rank to all others, from each of them to the first. */
  readonly hostWriter: FrameSink | undefined
  readonly hostReaders: ReadonlyMap<number, FrameSource>
}

/** The common fields of all frames of one attempt at one bucket. */
export type FrameContext = Omit<FrameHeader, 'hop' | 'segment' | 'bytes'>
