import { shuffleSamples } from '../feed/plan/order.js'
import type { ConformanceOptions } from './feed-conformance.js'

/** Seed 001, steps S1 to S4, sharing only the shuffle with the feed. The feed's trace must equal it. */
export function traceReferenceCarryOver(options: ConformanceOptions): string[] {
  const { sampleCount, nodeCount, seed, prefixCount } = options
  const trace: string[] = []
  const shuffle = (epoch: number) => [...shuffleSamples({ sampleCount, seed, epoch })]
  let next = shuffle(0)
  let nexList = new Set<number>()
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    const current = next // S22
    next = shuffle(epoch + 1) // S23
    const prefix = new Set(next.slice(0, prefixCount))
    const curList = nexList // S13
    nexList = new Set()
    for (const sample of current) {
      if (curList.delete(sample))
        trace.push(`kept ${sample}`) // S31
      else trace.push(`request ${sample % nodeCount}: ${sample}`, `miss ${sample}`) // S32
      if (prefix.has(sample)) nexList.add(sample)
      trace.push(`cur ${curList.size} nex ${nexList.size}`)
    }
  }
  return trace
}
