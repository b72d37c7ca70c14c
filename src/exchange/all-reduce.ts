import type { BucketBuffer } from './bucket-buffer.js'
import { ExchangeMismatch } from './failures.js'
import type { FrameContext, Links } from './links.js'
import type { Segment } from './plan/layout.js'
import { chunkReceived, chunkSent, countHops, phaseOf } from './plan/ring-schedule.js'
import { findMismatch } from './wire/frame.js'

/** Reports whose data is waited for, so that a rank which holds everybody up can be named. */
export type OnWaiting = (forRank: number | undefined, phase: string | undefined) => void

/** One attempt at a bucket: what its frames have in common, and who wants to know whom it waits for. */
interface Attempt {
  readonly context: FrameContext
  readonly onWaiting: OnWaiting
}

/**
 * Sums a bucket over all ranks, into its wire area, around the ring. Each rank adds its own gradients in fp32 to the
 * partial sum that comes by, which is rounded once per hop. A segment is sent on as soon as it is complete here, so that
 * all links are busy at once. Afterwards the wire area is the same on all ranks, bit by bit.
 */
export async function ringAllReduce(
  links: Links,
  buffer: BucketBuffer,
  { context, onWaiting }: Attempt,
): Promise<void> {
  const { rank, ranks } = links
  const [next, previous] = [(rank + 1) % ranks, (rank - 1 + ranks) % ranks]
  const { wireType } = context
  const segments = buffer.segments(wireType)
  const hops = countHops(ranks)
  const send = (hop: number, index: number, segment: Segment) => {
    const payload = buffer.wire(wireType, chunkSent(rank, hop, ranks), segment)
    getLink(links.writers, next).send({ ...context, hop, segment: index, bytes: payload.length }, payload)
  }
  buffer.encode(context, chunkSent(rank, 0, ranks))
  for (const [index, segment] of segments.entries()) send(0, index, segment)
  for (let hop = 0; hop < hops; hop++) {
    const phase = phaseOf(hop, ranks)
    const chunk = chunkReceived(rank, hop, ranks)
    onWaiting(previous, phase)
    for (const [index, segment] of segments.entries()) {
      const address = await receive(links, previous, { context, hop, index, segment })
      buffer.replace(wireType, { chunk, segment }, address)
      if (phase === 'reduce') buffer.addLocal(context, chunk, segment)
      if (hop + 1 < hops) send(hop + 1, index, segment)
    }
  }
  await getLink(links.writers, next).flushed()
  onWaiting(undefined, undefined)
}

/**
 * The same in two rounds among ranks that are all connected: every rank sends each other rank its chunk, sums its
 * own in fp32 (in rank order, so that a run can be repeated) and sends the result to all. For few ranks.
 */
export async function directAllReduce(
  links: Links,
  buffer: BucketBuffer,
  { context, onWaiting }: Attempt,
): Promise<void> {
  const { rank, ranks } = links
  const { wireType } = context
  const segments = buffer.segments(wireType)
  const peers = Array.from({ length: ranks - 1 }, (_, index) => (rank + 1 + index) % ranks)
  const send = (peer: number, hop: number, chunk: number) => {
    for (const [index, segment] of segments.entries()) {
      const payload = buffer.wire(wireType, chunk, segment)
      getLink(links.writers, peer).send({ ...context, hop, segment: index, bytes: payload.length }, payload)
    }
  }
  buffer.encode(context)
  for (const peer of peers) send(peer, 0, peer)
  buffer.startSum(context, rank)
  for (const peer of peers.toSorted((a, b) => a - b)) {
    onWaiting(peer, 'reduce')
    for (const [index, segment] of segments.entries()) {
      buffer.addToSum(wireType, segment, await receive(links, peer, { context, hop: 0, index, segment }))
    }
  }
  buffer.finishSum(wireType, rank)
  for (const peer of peers) send(peer, 1, rank)
  // A peer answers only when it has all of what it was sent, so nothing that is replaced here is still on its way.
  for (const peer of peers) {
    onWaiting(peer, 'gather')
    for (const [index, segment] of segments.entries()) {
      const address = await receive(links, peer, { context, hop: 1, index, segment })
      buffer.replace(wireType, { chunk: peer, segment }, address)
    }
  }
  for (const peer of peers) await getLink(links.writers, peer).flushed()
  onWaiting(undefined, undefined)
}

async function receive(
  links: Links,
  peer: number,
  part: {
    readonly context: FrameContext
    readonly hop: number
    readonly index: number
    readonly segment: Segment
  },
): Promise<number> {
  const { header, address } = await getLink(links.readers, peer).next()
  const { context } = part
  const bytes = part.segment.elements * (context.wireType === 'fp32' ? 4 : 2)
  const expected = { ...context, rank: peer, hop: part.hop, segment: part.index, bytes }
  const mismatch = findMismatch(expected, header, links.rank)
  if (mismatch !== undefined) throw new ExchangeMismatch(mismatch)
  return address
}

function getLink<T>(links: ReadonlyMap<number, T>, rank: number): T {
  const link = links.get(rank)
  if (link === undefined) throw new Error(`no link to rank ${rank}`)
  return link
}
