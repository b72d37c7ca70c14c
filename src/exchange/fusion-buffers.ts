import { DscError } from '../failure/dsc-error.js'
import { type Codec, MEMORY_LIMIT_BYTES, openCodec } from '../half/codec.js'
import { Int8Blocks, RANDOM_BYTES } from '../half/int8-blocks.js'
import { BucketBuffer, bucketBytes } from './bucket-buffer.js'
import type { Mode } from './connect-links.js'
import type { Levels } from './plan/find-levels.js'
import { planParts, SEGMENT_BYTES } from './plan/layout.js'
import type { PlanFile } from './plan-files.js'
import { READER_SLOTS } from './wire/frame-reader.js'

/** Place of a gradient in the fusion buffers. */
interface GradientPlace {
  readonly bucket: number
  readonly offset: number
  readonly elements: number
}

/** One buffer per bucket of a plan, all in one codec's memory, with room for the segments that arrive. */
export interface FusionBuffers {
  readonly codec: Codec
  readonly buffers: readonly BucketBuffer[]
  /** By gradient name. */
  readonly places: ReadonlyMap<string, GradientPlace>
}

/** Reserves the buffers of `plan` for a rank with these `levels`. Throws USAGE if they cannot fit into one process. */
export function openFusionBuffers(plan: PlanFile, mode: Mode, { network, host }: Levels): FusionBuffers {
  const sizes = plan.buckets.map(({ tensors }) => tensors.map(({ elements }) => elements))
  const sources = mode === 'ring' ? 1 : network.length - 1
  const bytes = sizes.reduce(
    (sum, parts) => sum + bucketBytes(parts, network.length, plan.wire),
    64 + (plan.wire === 'int8' ? RANDOM_BYTES : 0) + (sources * READER_SLOTS + host.length) * SEGMENT_BYTES,
  )
  if (bytes > MEMORY_LIMIT_BYTES) {
    throw new DscError(
      'USAGE',
      `the fusion buffers need ${bytes} bytes, one process can hold ${MEMORY_LIMIT_BYTES}`,
      {
        hint: 'exchange a part of the model in another process',
      },
    )
  }
  const codec = openCodec(bytes)
  const places = new Map<string, GradientPlace>()
  for (const [bucket, { tensors }] of plan.buckets.entries()) {
    const { starts } = planParts(sizes[bucket]!, plan.wire)
    for (const [at, { name, elements }] of tensors.entries())
      places.set(name, { bucket, offset: starts[at]!, elements })
  }
  const circle = { ranks: plan.ranks, chunks: network.length, isSummedOverHost: plan.levels === 2 }
  const blocks = plan.wire === 'int8' ? new Int8Blocks(codec) : undefined
  return { codec, places, buffers: sizes.map((parts) => new BucketBuffer({ codec, blocks }, parts, circle)) }
}
