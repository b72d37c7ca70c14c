import type { BucketBuffer, WireFormat } from './bucket-buffer.js'
import type { FrameContext, FrameSink, Links } from './links.js'
import type { Segment } from './plan/layout.js'
import { chunkReceived, chunkSent, countHops, phaseOf } from './plan/ring-schedule.js'
import { receiveFrame } from './receive-frame.js'

/** Reports which rank is waited for, so that a rank that holds up all others can be named. */
export type OnWaiting = (forRank: number | undefined, phase: string | undefined) => void

/** One attempt at a bucket: the common fields of its frames, and the callback for the rank it waits for. */
export interface Attempt {
  readonly context: FrameContext
  readonly onWaiting: OnWaiting
}

/** An attempt on the network, where values travel in this format. */
interface NetworkAttempt extends Attempt {
  readonly format: WireFormat
}

/**
 * Sums a bucket over all ranks of the network, into its wire area, around the ring. Each rank adds its own gradients in
 * fp32 to the partial sum that comes by, which is rounded once per hop. It sends a segment on as soon as the segment is
 * complete, so that all links are busy at once. Afterwards the wire area is the same on all ranks, bit by bit.
 */
export async function ringAllReduce(
  links: Links,
  buffer: BucketBuffer,
  { context, format, onWaiting }: NetworkAttempt,
): Promise<void> {
  const { network } = links.levels
  const [own, ranks] = [network.indexOf(links.rank), network.length]
  const next = findWriter(links, network[(own + 1) % ranks]!)
  const previous = network[(own - 1 + ranks) % ranks]!
  const { wireType } = context
  const segments = buffer.segments(wireType)
  const hops = countHops(ranks)
  const send = (hop: number, index: number, segment: Segment) => {
    const payload = buffer.wire(wireType, chunkSent(own, hop, ranks), segment)
    next.send({ ...context, hop, segment: index, bytes: payload.length }, payload)
  }
  buffer.encode(format, chunkSent(own, 0, ranks))
  for (const [index, segment] of segments.entries()) send(0, index, segment)
  for (let hop = 0; hop < hops; hop++) {
    const phase = phaseOf(hop, ranks)
    const chunk = chunkReceived(own, hop, ranks)
    onWaiting(previous, phase)
    for (const [index, segment] of segments.entries()) {
      const source = links.readers.get(previous)
      const address = await receiveFrame(source, { context, peer: previous, hop, index, segment })
      buffer.replace(wireType, { chunk, segment }, address)
      if (phase === 'reduce') buffer.addLocal(format, chunk, segment)
      if (hop + 1 < hops) send(hop + 1, index, segment)
    }
  }
  await next.flushed()
  onWaiting(undefined, undefined)
}

/**
 * The same in two rounds among ranks that are all connected: every rank sends each other rank its chunk, sums its own
 * in fp32 (in rank order, so that a run can be repeated) and sends the result to all. For few ranks.
 */
export async function directAllReduce(
  links: Links,
  buffer: BucketBuffer,
  { context, format, onWaiting }: NetworkAttempt,
): Promise<void> {
  const { network } = links.levels
  const [own, ranks] = [network.indexOf(links.rank), network.length]
  const { wireType } = context
  const segments = buffer.segments(wireType)
  const others = Array.from({ length: ranks - 1 }, (_, index) => (own + 1 + index) % ranks)
  const send = (other: number, hop: number, chunk: number) => {
    const writer = findWriter(links, network[other]!)
    for (const [index, segment] of segments.entries()) {
      const payload = buffer.wire(wireType, chunk, segment)
      writer.send({ ...context, hop, segment: index, bytes: payload.length }, payload)
    }
  }
  const receive = (other: number, hop: number, [index, segment]: [number, Segment]) => {
    const peer = network[other]!
    return receiveFrame(links.readers.get(peer), { context, peer, hop, index, segment })
  }
  buffer.encode(format)
  for (const other of others) send(other, 0, other)
  buffer.startSum(format, own)
  for (const other of wireType === 'int8' ? network.keys() : others.toSorted((a, b) => a - b)) {
    if (other === own) {
      buffer.addOwnToSum(wireType, own)
      continue
    }
    onWaiting(network[other], 'reduce')
    for (const numbered of segments.entries())
      buffer.addToSum(wireType, numbered[1], await receive(other, 0, numbered))
  }
  buffer.finishSum(wireType, own)
  for (const other of others) send(other, 1, own)
  // A peer answers only after it has received everything, so nothing replaced here is still being sent.
  for (const other of others) {
    onWaiting(network[other], 'gather')
    for (const numbered of segments.entries()) {
      const address = await receive(other, 1, numbered)
      buffer.replace(wireType, { chunk: other, segment: numbered[1] }, address)
    }
  }
  for (const other of others) await findWriter(links, network[other]!).flushed()
  onWaiting(undefined, undefined)
}

function findWriter(links: Links, rank: number): FrameSink {
  const writer = links.writers.get(rank)
  if (writer === undefined) throw new Error(`no link to rank ${rank}`)
  return writer
}
