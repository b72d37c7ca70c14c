import { atEnd } from '../../failure/closers.js'
import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { ArenaBudgetOptions } from '../plan/arena-budget.js'
import type { RehearsedStall } from '../plan/expectation.js'
import type { RequestCost } from '../plan/request-cost.js'
import type { BatchStream } from '../stream/batch-stream.js'
import { RehearsalClock } from './rehearsal-clock.js'
import { openRehearsalEngine } from './rehearsal-engine.js'

/** How fast training takes batches, and how fast nodes answer. */
interface Pace {
  readonly stepMs: number
  readonly cost: RequestCost
}

/**
 * Simulates two epochs of a feed against a clock that advances only while everything waits. Nodes answer after t0 and
 * send their requests in turn at B. Each trainer takes a batch, holds it for a step and gives it back. Returns how much
 * of the second epoch the trainers wait.
 */
export async function rehearseStall(
  table: SampleTable,
  plan: ArenaBudgetOptions,
  { stepMs, cost }: Pace,
): Promise<RehearsedStall> {
  const wait = new WaitMeter(() => source.isSending)
  const clock: RehearsalClock = new RehearsalClock(
    () => engine.isOrdering() || engine.streams.some(({ isGivingBack }) => isGivingBack),
    (fromMs, toMs) => wait.pass(toMs - fromMs),
  )
  // Eight slices a batch are enough to let samples arrive one after the other.
  const slice = Math.max(1, Math.floor((plan.ranks[0]?.batchSize ?? 1) / 8))
  const source = new PacedSource(table, plan.nodeCount, { cost, clock, slice })
  const engine = openRehearsalEngine(source, plan, () => clock.nowMs)
  await using _ = atEnd(() => engine.close())
  const training = Promise.all(engine.streams.map((stream) => train(stream, { stepMs, clock, wait })))
  await clock.runUntil(training)
  const shares = await training
  const stallShare = shares.reduce((sum, share) => sum + share, 0) / shares.length
  return { stallShare, cause: stallShare === 0 ? 'none' : wait.cause }
}

/** Runs one trainer; returns the share of the second epoch that it waits, 0–1. */
async function train(
  stream: BatchStream,
  { stepMs, clock, wait }: { stepMs: number; clock: RehearsalClock; wait: WaitMeter },
): Promise<number> {
  await stream.start(0, 0)
  const { stepsPerEpoch } = stream.sequence
  let waitedMs = 0
  let begunMs = 0
  for (let at = 0; at < 2 * stepsPerEpoch; at++) {
    const isLater = at >= stepsPerEpoch
    if (at === stepsPerEpoch) begunMs = clock.nowMs
    const askedMs = clock.nowMs
    if (isLater) wait.waiting++
    const batch = await stream.read(Math.floor(at / stepsPerEpoch), at % stepsPerEpoch)
    if (isLater) {
      wait.waiting--
      waitedMs += clock.nowMs - askedMs
    }
    await clock.sleep(stepMs)
    stream.release(batch)
  }
  return waitedMs / (clock.nowMs - begunMs)
}

/** Measures what nodes do while trainers wait. */
class WaitMeter {
  /** Number of trainers that wait now. */
  waiting = 0
  readonly #isSending: () => boolean
  #waitedMs = 0
  #sentMs = 0

  constructor(isSending: () => boolean) {
    this.#isSending = isSending
  }

  /** `rate` if a node was sending for most of the time that trainers waited: asking earlier would not help. */
  get cause(): 'rate' | 'latency' {
    return this.#sentMs * 2 > this.#waitedMs ? 'rate' : 'latency'
  }

  pass(ms: number): void {
    if (this.waiting === 0) return
    this.#waitedMs += ms
    if (this.#isSending()) this.#sentMs += ms
  }
}

interface PacedOptions {
  readonly cost: RequestCost
  readonly clock: RehearsalClock
  /** Number of samples that arrive at a time. */
  readonly slice: number
}

/** Nodes that hold every sample, but send none of the bytes. */
class PacedSource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'peer'
  readonly table: SampleTable
  readonly nodeCount: number
  readonly #options: PacedOptions
  /** For each node, when it has sent everything requested so far. */
  readonly #freeAtMs: number[]

  constructor(table: SampleTable, nodeCount: number, options: PacedOptions) {
    this.table = table
    this.nodeCount = nodeCount
    this.#options = options
    this.#freeAtMs = new Array<number>(nodeCount).fill(0)
  }

  get isSending(): boolean {
    const { clock } = this.#options
    return this.#freeAtMs.some((freeAtMs) => freeAtMs > clock.nowMs)
  }

  nodeName(node: number): string {
    return `node ${node}`
  }

  async read({ node, samples }: ReadRequest, onSample: OnSample): Promise<void> {
    const { cost, clock, slice } = this.#options
    await clock.sleep(cost.fixedMs)
    for (let at = 0; at < samples.length; at += slice) {
      const end = Math.min(at + slice, samples.length)
      let bytes = 0
      for (let i = at; i < end; i++) bytes += this.table.lengths[samples[i]!]!
      const freeAtMs = Math.max(clock.nowMs, this.#freeAtMs[node]!) + bytes / cost.bytesPerMs
      this.#freeAtMs[node] = freeAtMs
      await clock.sleep(freeAtMs - clock.nowMs)
      for (let i = at; i < end; i++) onSample(i, 'ok')
    }
  }

  async close(): Promise<void> {}
}
