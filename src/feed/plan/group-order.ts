import { DscError } from '../../failure/dsc-error.js'
import type { SampleGroups } from '../../samples/plan/sample-groups.js'
import { allocatePages } from '../../samples/plan/shared-pages.js'
import { createRandomStream } from './random.js'

/**
 * Order in which samples are read through groups: at any place of an epoch, samples come from that many groups at most.
 * `groups-16` is the order of an epoch through 16 groups.
 */
export type GroupOrder = `groups-${number}`

/** Formats an order through groups. */
export function formatGroupOrder(window: number): GroupOrder {
  return `groups-${window}`
}

/** Number of groups open at a time in such an order; undefined if `text` is another order. */
export function parseGroupOrder(text: string | undefined): number | undefined {
  const digits = /^groups-([1-9]\d{0,5})$/.exec(text ?? '')?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/**
 * Throws USAGE if a feed chose groups by itself and some ranks of the job are on other machines. Whether a disk has
 * room for rows differs between machines, but the whole job must have one order.
 */
export function refuseOrderOfOneMachine(feed: {
  readonly order: string
  /** The requested order; undefined: the feed chose. */
  readonly asked: string | undefined
  readonly world: number
  /** Number of ranks on this machine, which share its disk. */
  readonly localRanks: number
}): void {
  const { order, asked, world, localRanks } = feed
  if (asked !== undefined || world <= localRanks || parseGroupOrder(order) === undefined) return
  throw new DscError(
    'USAGE',
    `this machine has no room to unpack rows, so its feed has the order ${order}; others may have another`,
    { hint: `order: '${order}' on all machines, or room: dsc status` },
  )
}

/**
 * Shuffles the samples of an epoch, in memory that threads can share. Groups follow each other in a random order. The
 * first `window` are open at the start, and whenever one has been read to its end, the next one opens. The samples of a
 * group fall anywhere between its opening and its end, and those between two openings are shuffled together. With as
 * many groups as the window, the shuffle is global.
 */
export function shuffleGroups(
  { ends, window }: SampleGroups,
  { seed, epoch }: { readonly seed: number; readonly epoch: number },
): Uint32Array {
  const random = createRandomStream(seed, epoch)
  const count = ends.length
  const open = Math.min(window, count)
  const order = Uint32Array.from({ length: count }, (_, group) => group)
  shuffle(order, 0, count, random)
  // Each opening begins a stretch, except that the first `open` groups open together.
  const stretches = count - open + 1
  const sampleCount = count === 0 ? 0 : ends[count - 1]!
  const stretchOf = new Uint32Array(sampleCount)
  const nexts = new Float64Array(stretches + 1)
  for (const [place, group] of order.entries()) {
    const first = Math.max(0, place - open + 1)
    const behind = Math.min(place + 1, stretches)
    for (let sample = group === 0 ? 0 : ends[group - 1]!; sample < ends[group]!; sample++) {
      const stretch = first + random.nextBelow(behind - first)
      stretchOf[sample] = stretch
      nexts[stretch + 1]!++
    }
  }
  for (let stretch = 0; stretch < stretches; stretch++) nexts[stretch + 1]! += nexts[stretch]!
  const starts = nexts.slice()
  const samples = allocatePages(Uint32Array, sampleCount)
  for (let sample = 0; sample < sampleCount; sample++) samples[nexts[stretchOf[sample]!]!++] = sample
  for (let stretch = 0; stretch < stretches; stretch++)
    shuffle(samples, starts[stretch]!, starts[stretch + 1]!, random)
  return samples
}

/** Fisher–Yates over a range, from its last place down. */
function shuffle(
  numbers: Uint32Array,
  start: number,
  end: number,
  random: { nextBelow(bound: number): number },
): void {
  for (let i = end - 1; i > start; i--) {
    const j = start + random.nextBelow(i - start + 1)
    const held = numbers[i]!
    numbers[i] = numbers[j]!
    numbers[j] = held
  }
}
