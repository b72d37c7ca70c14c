import { ExchangeMismatch } from './failures.js'
import type { FrameContext, FrameSource } from './links.js'
import type { Segment } from './plan/layout.js'
import { tensorBytes } from './plan/wire-type.js'
import { findMismatch } from './wire/frame.js'

/** The expected properties of a rank's next frame. */
interface ExpectedFrame {
  /** The attempt at a bucket, as this rank sees it. */
  readonly context: FrameContext
  readonly peer: number
  readonly hop: number
  /** Number of the segment within its hop. */
  readonly index: number
  readonly segment: Segment
}

/** Takes the next frame of `source` and returns the address of its payload, or throws if it is not the expected one. */
export async function receiveFrame(
  source: FrameSource | undefined,
  { context, peer, hop, index, segment }: ExpectedFrame,
): Promise<number> {
  if (source === undefined) throw new Error(`no link from rank ${peer}`)
  const { header, address } = await source.next()
  const bytes = tensorBytes(context.wireType, segment.elements)
  const expected = { ...context, rank: peer, hop, segment: index, bytes }
  const mismatch = findMismatch(expected, header, context.rank)
  if (mismatch !== undefined) throw new ExchangeMismatch(mismatch)
  return address
}
