import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import { nodeOfSample, type SamplePlacement } from '../../samples/plan/sample-placement.js'
import type { SampleSource, SampleStatus } from '../../samples/sample-source.js'
import type { SampleArena } from '../arena/sample-arena.js'
import type { LeasedBatch } from './leased-batch.js'
import { LostSample } from './lost-sample.js'
import { nameCulprit } from './sample-requests.js'
import { openSlot, type Slot } from './slot.js'
import type { StreamMeter } from './stream-meter.js'

interface PickOptions {
  readonly arena: SampleArena
  readonly source: SampleSource
  readonly placed: SamplePlacement
  /** Counts the wait as one for the source that gave the last sample. */
  readonly meter: StreamMeter
  readonly nowMs: () => number
}

/** Reads any samples into the arena, outside of the order, for map-style datasets. */
export async function pickSamples(options: PickOptions, samples: readonly number[]): Promise<LeasedBatch> {
  const { arena, source } = options
  const slots: Slot[] = []
  try {
    for (const [position, sample] of samples.entries())
      slots.push(reserveSlot(options, { sample, position, count: samples.length }))
    const lost = await readSlots(options, slots)
    if (lost) throw new LostSample(source, lost.slot, lost.status)
  } catch (error) {
    for (const slot of slots) arena.space.finish(slot.extent!)
    throw error
  }
  for (const slot of slots) arena.space.extents.mark(slot.extent!, 'leased')
  return { epoch: 0, step: 0, slots, lost: [], offsets: slots.map((slot) => arena.offsetOf(slot.extent!)) }
}

function reserveSlot(
  { arena, source, placed }: PickOptions,
  asked: { readonly sample: number; readonly position: number; readonly count: number },
): Slot {
  const { sample, position, count } = asked
  if (!Number.isInteger(sample) || sample < 0 || sample >= source.table.count)
    throw new DscError('USAGE', `sample ${sample} is not one of the ${source.table.count} of this dataset`)
  const extent = arena.reserve(sample)
  if (!extent)
    throw new DscError('FEED_MEMORY', `${formatCount(count, 'sample')} at once do not fit into the feed`, {
      hint: 'a larger --memory, or smaller batches',
    })
  const node = nodeOfSample(placed, sample, position)
  return {
    ...openSlot({ serial: -1, epoch: 0, position: 0, sample, node }),
    state: 'leased',
    isWanted: true,
    extent,
  }
}

/** Makes each node read its slots into the arena. Returns a sample that no source could deliver, if any. */
async function readSlots(
  { arena, source, meter, nowMs }: PickOptions,
  slots: readonly Slot[],
): Promise<{ readonly slot: Slot; readonly status: SampleStatus } | undefined> {
  const askedAtMs = nowMs()
  const lost: { slot: Slot; status: SampleStatus }[] = []
  let culprit = nameCulprit(source, 0, source.origin)
  const readNode = (node: number) => {
    const mine = slots.filter((slot) => slot.node === node)
    const request = {
      node,
      samples: Uint32Array.from(mine, (slot) => slot.sample),
      offsets: Float64Array.from(mine, (slot) => arena.offsetOf(slot.extent!)),
      isMiss: true,
    }
    return source.read(request, (i, status, origin) => {
      culprit = nameCulprit(source, node, origin ?? source.origin)
      if (status !== 'ok') lost.push({ slot: mine[i]!, status })
    })
  }
  await Promise.all([...new Set(slots.map((slot) => slot.node))].map(readNode))
  meter.stall('storage', culprit, nowMs() - askedAtMs)
  return lost[0]
}
