import { crc32 } from 'node:zlib'
import { directAllReduce, type OnWaiting, ringAllReduce } from './all-reduce.js'
import type { BucketBuffer, WireFormat } from './bucket-buffer.js'
import type { Mode } from './connect-links.js'
import { spreadOverHost } from './host/host-level.js'
import type { Links } from './links.js'
import { advanceScale, type ExchangeOutcome, planWire, type ScaleState } from './plan/scale.js'
import type { WireType } from './plan/wire-type.js'

/** A bucket's result, still in its wire area: `decode(format)` writes it over the local gradients. */
export interface BucketResult extends WireFormat {
  readonly outcome: ExchangeOutcome['kind']
  readonly nextScale: ScaleState
}

/**
 * Exchanges one full bucket, after `sumOverHost` with two levels. If half precision overflows, the result shows it, and
 * the result is the same on all ranks: so all of them, without a message, repeat the bucket in fp32 from the local
 * gradients (the host's sums), which are still there.
 */
export async function exchangeBucket(
  links: Links,
  buffer: BucketBuffer,
  options: {
    readonly mode: Mode
    /** Tensors in the bucket. */
    readonly tensors: number
    readonly scale: ScaleState
    readonly wire: WireType
    readonly place: { readonly epoch: number; readonly step: number; readonly bucket: number }
    readonly onWaiting: OnWaiting
  },
): Promise<BucketResult> {
  const { mode, tensors, scale, wire, place, onWaiting } = options
  const planned = planWire(scale, { elements: buffer.elements, tensors })
  const allReduce = mode === 'ring' ? ringAllReduce : directAllReduce
  const { network, host } = links.levels
  const run = async (format: WireFormat, attempt: number) => {
    const scales = crc32(Int8Array.from(format.exponents))
    const context = { ...place, wireType: format.wireType, scales, attempt, rank: links.rank }
    const isOnNetwork = host[0] === links.rank
    if (isOnNetwork && network.length > 1) await allReduce(links, buffer, { context, format, onWaiting })
    else if (isOnNetwork) buffer.encode(format)
    if (host.length > 1) await spreadOverHost(links, buffer, { context, onWaiting })
    return buffer.amaxes(format)
  }
  const full: WireFormat = { wireType: 'fp32', exponents: [] }
  const isWithinHost = network.length === 1 && host.length > 1 // memory carries halves no faster
  if (wire === 'int8' && network.length > 1) {
    const blocks: WireFormat = { wireType: 'int8', exponents: [] }
    const outcome = (await run(blocks, 0)) === undefined ? 'not finite' : 'clean'
    return { ...blocks, outcome, nextScale: scale } // blocks have their own scales, and cannot overflow
  }
  const format = wire !== 'fp16' || isWithinHost ? full : planned
  const amaxes = await run(format, 0)
  if (amaxes !== undefined) return finish(format, scale, { kind: 'clean', wireType: format.wireType, amaxes })
  if (format.wireType === 'fp32') return finish(format, scale, { kind: 'not finite' })
  await links.hostWriter?.flushed() // the wire area will be overwritten
  const repeated = await run(full, 1)
  return finish(
    full,
    scale,
    repeated === undefined ? { kind: 'not finite' } : { kind: 'redone', amaxes: repeated },
  )
}

function finish(format: WireFormat, scale: ScaleState, outcome: ExchangeOutcome): BucketResult {
  return { ...format, outcome: outcome.kind, nextScale: advanceScale(scale, outcome) }
}
