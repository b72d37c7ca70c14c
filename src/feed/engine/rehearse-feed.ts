import { setImmediate as nextTurn } from 'node:timers/promises'
import { atEnd } from '../../failure/closers.js'
import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { ArenaBudgetOptions } from '../plan/arena-budget.js'
import type { Rehearsal, RehearsedEpoch } from '../plan/expectation.js'
import type { BatchStream } from '../stream/batch-stream.js'
import { openRehearsalEngine } from './rehearsal-engine.js'

/**
 * Simulates two epochs of a feed without bytes. It decides like a real feed, storage answers at once, and training
 * takes its next batch when every answer has arrived. The ranks of `plan` count as the whole job.
 */
export async function rehearseFeed(table: SampleTable, plan: ArenaBudgetOptions): Promise<Rehearsal> {
  const source = new EmptySource(table, plan.nodeCount)
  const engine = openRehearsalEngine(source, plan, () => performance.now())
  const { streams } = engine
  await using _ = atEnd(() => engine.close())
  for (const stream of streams) await stream.start(0, 0)
  const first = await rehearseEpoch(streams, source, 0)
  const both = await rehearseEpoch(streams, source, 1)
  return { first, later: { requests: both.requests - first.requests, kept: both.kept - first.kept } }
}

/** Returns the counts at the end of `epoch`. */
async function rehearseEpoch(
  streams: readonly BatchStream[],
  source: EmptySource,
  epoch: number,
): Promise<RehearsedEpoch> {
  for (let step = 0; step < streams[0]!.sequence.stepsPerEpoch; step++) {
    const batches = await Promise.all(streams.map((stream) => stream.read(epoch, step)))
    for (const [rank, stream] of streams.entries()) stream.release(batches[rank]!)
    do await nextTurn()
    while (source.isAsked || streams.some(({ isGivingBack }) => isGivingBack))
  }
  return {
    requests: streams.reduce((sum, { counts }) => sum + counts.requests, 0),
    kept: streams.reduce((sum, { counts }) => sum + counts.kept, 0),
  }
}

/** Storage that delivers every sample at once, without its bytes. */
class EmptySource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'local'
  readonly table: SampleTable
  readonly nodeCount: number
  #asked = 0

  constructor(table: SampleTable, nodeCount: number) {
    this.table = table
    this.nodeCount = nodeCount
  }

  /** Whether a request is in flight. */
  get isAsked(): boolean {
    return this.#asked > 0
  }

  nodeName(node: number): string {
    return `node ${node}`
  }

  async read({ samples }: ReadRequest, onSample: OnSample): Promise<void> {
    this.#asked++
    await nextTurn()
    for (let i = 0; i < samples.length; i++) onSample(i, 'ok')
    this.#asked--
  }

  async close(): Promise<void> {}
}
