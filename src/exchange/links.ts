import type { Levels } from './plan/find-levels.js'
import type { FrameHeader } from './wire/frame.js'

/** A frame whose payload lies in the codec's memory until the next call of `next`. */
export interface ReceivedFrame {
  readonly header: FrameHeader
  readonly address: number
}

/** Frames from one rank, in order. */
export interface FrameSource {
  /** The next frame; frees the one before. Rejects when the source fails or a frame is damaged. */
  readonly next: () => Promise<ReceivedFrame>
  /** Ends it: whoever waits is told why. */
  readonly fail: (error: Error) => void
}

/** Frames to one rank, or to several that all get the same. */
export interface FrameSink {
  /** Queues a frame. The payload is not copied and must stay as it is until `flushed` resolves. */
  readonly send: (header: FrameHeader, payload: Uint8Array) => void
  /** Resolves when no frame sent so far needs its payload any more; rejects when the sink fails. */
  readonly flushed: () => Promise<void>
  /** Ends it: whoever waits is told why. */
  readonly fail: (error: Error) => void
}

/** The connections of one rank. */
export interface Links {
  readonly rank: number
  readonly levels: Levels
  /** Over the network, by rank; empty on ranks that are not on it. */
  readonly writers: ReadonlyMap<number, FrameSink>
  readonly readers: ReadonlyMap<number, FrameSource>
  /** Through the memory of the host: from its first rank to all others, from each of them to the first. */
  readonly hostWriter: FrameSink | undefined
  readonly hostReaders: ReadonlyMap<number, FrameSource>
}

/** What all frames of one attempt at one bucket have in common. */
export type FrameContext = Omit<FrameHeader, 'hop' | 'segment' | 'bytes'>
