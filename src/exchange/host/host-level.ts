import type { Attempt } from '../all-reduce.js'
import type { BucketBuffer } from '../bucket-buffer.js'
import type { Links } from '../links.js'
import { receiveFrame } from '../receive-frame.js'

/**
 * Sums a bucket over the ranks of this host, in fp32, into the local gradients of the host's first rank: its own first,
 * then the others' in rank order. They are scaled for the mean beforehand, so that no sum overflows.
 */
export async function sumOverHost(
  links: Links,
  buffer: BucketBuffer,
  { context, onWaiting }: Attempt,
): Promise<void> {
  const { rank, levels, hostWriter, hostReaders } = links
  const segments = buffer.segments('fp32')
  if (levels.host[0] !== rank) {
    for (let chunk = 0; chunk < buffer.chunks; chunk++)
      for (const [index, segment] of segments.entries()) {
        const payload = buffer.localBytes(chunk, segment)
        hostWriter?.send({ ...context, hop: chunk, segment: index, bytes: payload.length }, payload)
      }
    return
  }
  buffer.startHostSum()
  for (const peer of levels.host.slice(1)) {
    onWaiting(peer, 'sum of the host')
    for (let hop = 0; hop < buffer.chunks; hop++)
      for (const [index, segment] of segments.entries()) {
        const address = await receiveFrame(hostReaders.get(peer), { context, peer, hop, index, segment })
        buffer.addToHostSum(hop, segment, address)
      }
  }
  onWaiting(undefined, undefined)
}

/** Copies the wire area of the host's first rank to those of the others, bit by bit. */
export async function spreadOverHost(
  links: Links,
  buffer: BucketBuffer,
  { context, onWaiting }: Attempt,
): Promise<void> {
  const { rank, levels, hostWriter, hostReaders } = links
  const { wireType } = context
  const segments = buffer.segments(wireType)
  const peer = levels.host[0]!
  const isFirst = peer === rank
  if (!isFirst) onWaiting(peer, 'result of the host')
  for (let hop = 0; hop < buffer.chunks; hop++)
    for (const [index, segment] of segments.entries()) {
      if (isFirst) {
        const payload = buffer.wire(wireType, hop, segment)
        hostWriter?.send({ ...context, hop, segment: index, bytes: payload.length }, payload)
      } else {
        const address = await receiveFrame(hostReaders.get(peer), { context, peer, hop, index, segment })
        buffer.replace(wireType, { chunk: hop, segment }, address)
      }
    }
  onWaiting(undefined, undefined)
}
