import { nameHoldUp } from '../../model/fed-time.js'
import { chooseBlockSize, MAX_CAUSES, type StepBlock, type StepBlocks } from '../../model/step-blocks.js'

/** The steps that one rank told, and its waits. */
export interface RankSteps {
  /** Number of the first step in the lists. */
  readonly first: number
  readonly tookUs: readonly number[]
  readonly waitedUs: readonly number[]
  /** Cause → how long it waited for that in all, in ms. */
  readonly waits: ReadonlyMap<string, number>
}

/** Sums up steps `from` to `to` (exclusive), of each what its last rank did: the one that waited longest. */
export function sumSteps(
  ranks: readonly (readonly [rank: number, RankSteps])[],
  from: number,
  to: number,
): StepBlocks {
  const size = chooseBlockSize(from, to)
  const sums = new Map<number, { steps: number; waitedUs: number; restUs: number }>()
  const behindUs = ranks.map(() => 0)
  for (let step = from; step < to; step += 1) {
    const waited = ranks.map(([, { first, waitedUs }]) => waitedUs[step - first]!)
    const longest = Math.max(...waited)
    const last = waited.indexOf(longest)
    const [, { first, tookUs }] = ranks[last]!
    behindUs[last]! += longest
    const at = Math.floor(step / size)
    const sum = sums.get(at) ?? { steps: 0, waitedUs: 0, restUs: 0 }
    sum.steps += 1
    sum.waitedUs += longest
    sum.restUs += tookUs[step - first]! - longest
    sums.set(at, sum)
  }
  const blocks = Array.from(
    sums,
    ([at, { steps, waitedUs, restUs }]): StepBlock => [at, steps, toMs(waitedUs), toMs(restUs)],
  )
  return { size, blocks, causes: divideWaits(ranks, behindUs) }
}

/** Divides the waits of the last ranks among their causes. */
function divideWaits(
  ranks: readonly (readonly [rank: number, RankSteps])[],
  behindUs: readonly number[],
): StepBlocks['causes'] {
  const causes = ranks.flatMap(([rank, { waits }], at) => {
    const waitedMs = [...waits.values()].reduce((sum, ms) => sum + ms, 0)
    return Array.from(
      waits,
      ([culprit, ms]) => [nameHoldUp(culprit, rank), toMs((behindUs[at]! * ms) / waitedMs)] as const,
    )
  })
  const largest = causes.filter(([, ms]) => ms > 0).sort(([, a], [, b]) => b - a)
  return Object.fromEntries(largest.slice(0, MAX_CAUSES))
}

function toMs(us: number): number {
  return Math.max(0, Math.round(us / 1000))
}
