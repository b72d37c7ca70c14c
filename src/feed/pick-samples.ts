import { DscError } from '../failure/dsc-error.js'
import { formatCount } from '../model/format-count.js'
import { ARENA_BASE } from './arena-file.js'
import type { FeedStreamOptions, LeasedBatch } from './feed-stream.js'
import { LostSample } from './lost-sample.js'
import type { Slot } from './plan/slot.js'
import type { SampleStatus } from './sources/sample-source.js'

type PickOptions = Pick<FeedStreamOptions, 'arena' | 'source' | 'reserve' | 'nodeOf'>

/** Reads any samples into the arena, outside of the order: what map-style datasets ask for. */
export async function pickSamples(options: PickOptions, samples: readonly number[]): Promise<LeasedBatch> {
  const { arena, source } = options
  const slots: Slot[] = []
  const giveBack = () => {
    for (const slot of slots) arena.finish(slot.extent!)
  }
  for (const [position, sample] of samples.entries()) {
    const isKnown = Number.isInteger(sample) && sample >= 0 && sample < source.table.count
    const extent = isKnown ? options.reserve(sample) : undefined
    if (!extent) {
      giveBack()
      if (!isKnown)
        throw new DscError(
          'USAGE',
          `sample ${sample} is not one of the ${source.table.count} of this dataset`,
        )
      throw new DscError(
        'FEED_MEMORY',
        `${formatCount(samples.length, 'sample')} at once do not fit into the feed`,
        {
          hint: 'a larger --memory, or smaller batches',
        },
      )
    }
    const node = options.nodeOf(sample, position)
    slots.push({
      serial: -1,
      epoch: 0,
      position: 0,
      sample,
      node,
      state: 'leased',
      isWanted: true,
      isAhead: false,
      extent,
    })
  }
  const lost: { slot: Slot; status: SampleStatus }[] = []
  await Promise.all(
    [...new Set(slots.map((slot) => slot.node))].map((node) => {
      const mine = slots.filter((slot) => slot.node === node)
      return source.read(
        {
          node,
          samples: Uint32Array.from(mine, (slot) => slot.sample),
          offsets: Float64Array.from(mine, (slot) => ARENA_BASE + arena.offsetOf(slot.extent!)),
          isMiss: true,
        },
        (i, status) => {
          if (status !== 'ok') lost.push({ slot: mine[i]!, status })
        },
      )
    }),
  )
  const first = lost[0]
  if (first) {
    giveBack()
    throw new LostSample(source, first.slot, first.status)
  }
  for (const slot of slots) slot.extent!.state = 'leased'
  return {
    epoch: 0,
    step: 0,
    slots,
    lost: [],
    offsets: slots.map((slot) => ARENA_BASE + arena.offsetOf(slot.extent!)),
  }
}
