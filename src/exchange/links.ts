import type { FrameHeader } from './wire/frame.js'
import type { FrameReader } from './wire/frame-reader.js'
import type { FrameWriter } from './wire/frame-writer.js'

/** The connections of one rank: a writer to and a reader from every rank it talks to. */
export interface Links {
  readonly rank: number
  readonly ranks: number
  readonly writers: ReadonlyMap<number, FrameWriter>
  readonly readers: ReadonlyMap<number, FrameReader>
}

/** What all frames of one attempt at one bucket have in common. */
export type FrameContext = Omit<FrameHeader, 'hop' | 'segment' | 'bytes'>
