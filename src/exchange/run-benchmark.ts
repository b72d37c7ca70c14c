import { atEnd } from '../failure/closers.js'
import type { Mode } from './connect-links.js'
import type { BenchRow } from './exchange-answer.js'
import { joinExchange } from './join-exchange.js'
import { median } from './plan/fit-link.js'
import type { WireType } from './plan/wire-type.js'
import type { PlanFile } from './plan-files.js'

/** Exchanges one bucket of each size, `repeats` times; every rank must call it alike. */
export async function benchExchange(options: {
  readonly rendezvous: { readonly host: string; readonly port: number }
  readonly token?: string | undefined
  readonly listenHost?: string | undefined
  readonly ranks: number
  readonly rank: number
  readonly sizesBytes: readonly number[]
  readonly wire: WireType
  readonly mode: Mode
  readonly levels: 1 | 2
  readonly repeats: number
  readonly signal: AbortSignal
}): Promise<BenchRow[]> {
  const { ranks, sizesBytes, wire, levels, repeats } = options
  const rows: BenchRow[] = []
  for (const bytes of sizesBytes) {
    const elements = Math.max(1, Math.round(bytes / 4))
    const plan: PlanFile = {
      hash: `bench-${elements}`,
      ranks,
      wire,
      levels,
      buckets: [{ tensors: [{ name: 'gradient', elements }] }],
    }
    const session = await joinExchange({
      ...options,
      plan,
      job: `bench-${wire}-${options.mode}-${levels}-${elements}`,
    })
    await using _ = atEnd(() => session.close())
    const gradient = new Float32Array(elements)
    const seconds: number[] = []
    // Two warm-up steps: the first is fp32 in any case, the second fills caches and socket buffers.
    for (let round = 0; round < repeats + 2; round++) {
      for (let at = 0; at < elements; at++) gradient[at] = ((at * 31 + round) % 1000) / 1000
      const start = performance.now()
      const step = session.beginStep()
      await step.add('gradient', gradient)
      await step.commit()
      if (round >= 2) seconds.push((performance.now() - start) / 1000)
    }
    const middle = median(seconds)
    rows.push({
      messageBytes: elements * 4,
      medianMs: middle * 1000,
      bytesPerSecond: (elements * 4) / middle,
    })
  }
  return rows
}
