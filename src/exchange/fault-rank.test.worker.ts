import type { DscError } from '../failure/dsc-error.js'
import { PeerLost } from './failures.js'
import { joinExchange } from './join-exchange.js'
import type { PlanFile } from './plan-files.js'

// One rank of the fault suite: exchanges until a rank dies, reports what it saw, and joins again.

/** Options that the suite passes to a rank at its start, as JSON in the first argument. */
export interface FaultRankOptions {
  readonly rank: number
  readonly ranks: number
  readonly port: number
  readonly committedSteps: number
  readonly levels: 1 | 2
  readonly wire: PlanFile['wire']
}

/** A report of a rank. Times are Unix epoch in milliseconds. */
export type FaultReport =
  | { readonly kind: 'joined'; readonly epoch: number }
  | { readonly kind: 'suspect'; readonly rank: number; readonly atMs: number }
  | {
      readonly kind: 'failed'
      readonly atMs: number
      readonly name: string
      readonly lostRank: number | undefined
      readonly message: string
      readonly committedSteps: number
      /** Whether all gradients are unchanged, all are means, or anything else. */
      readonly gradients: 'untouched' | 'complete' | 'mixed'
    }

const SIZES = [200_000, 1000, 70_000, 30_000]

/** The plan of the suite: three buckets, the first two of several segments. */
function faultPlan({ ranks, levels, wire }: FaultRankOptions): PlanFile {
  const tensors = SIZES.map((elements, index) => ({ name: `tensor${index}`, elements }))
  return {
    hash: 'faults',
    ranks,
    wire,
    levels,
    buckets: [{ tensors: tensors.slice(0, 2) }, { tensors: [tensors[2]!] }, { tensors: [tensors[3]!] }],
  }
}

const report = (message: FaultReport) => process.send?.(message)

async function run(options: FaultRankOptions): Promise<never> {
  const { rank, ranks, port, committedSteps } = options
  let committed = committedSteps
  for (;;) {
    const session = await joinExchange({
      rendezvous: { host: '127.0.0.1', port },
      plan: faultPlan(options),
      rank,
      hostKey: rank < ranks / 2 ? 'first' : 'second',
      committedSteps: committed,
      onSuspect: (suspect) => report({ kind: 'suspect', rank: suspect.rank, atMs: Date.now() }),
    })
    report({ kind: 'joined', epoch: session.epoch })
    const own = (step: number) => (rank + 1) * 2 ** -(step % 5)
    const mean = (step: number) => ((ranks + 1) / 2) * 2 ** -(step % 5)
    const gradients = SIZES.map((elements) => new Float32Array(elements))
    try {
      for (;;) {
        for (const gradient of gradients) gradient.fill(own(committed))
        const step = session.beginStep()
        for (const [index, gradient] of gradients.entries()) await step.add(`tensor${index}`, gradient)
        await step.commit()
        committed = session.committedSteps()
      }
    } catch (error) {
      const atMs = Date.now()
      const isAll = (value: number, slack: number) =>
        gradients.every((gradient) => gradient.every((found) => Math.abs(found / value - 1) <= slack))
      const isUntouched = isAll(own(committed), 0)
      // After a failure between two steps, the means of the previous step are there: no gradients of a new step were
      // added.
      const isComplete = isAll(mean(committed - 1), options.wire === 'int8' ? 1 / 63 : 2e-3)
      committed = session.committedSteps()
      report({
        kind: 'failed',
        atMs,
        name: (error as Error).name,
        lostRank: error instanceof PeerLost ? error.rank : undefined,
        message: (error as DscError).message,
        committedSteps: committed,
        gradients: isUntouched ? 'untouched' : isComplete ? 'complete' : 'mixed',
      })
      await session.close()
    }
  }
}

if (process.argv[2]) await run(JSON.parse(process.argv[2]) as FaultRankOptions)
