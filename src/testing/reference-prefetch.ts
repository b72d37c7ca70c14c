import { shuffleSamples } from '../feed/plan/order.js'
import type { ConformanceOptions } from './feed-conformance.js'

interface Entry {
  readonly sample: number
  readonly length: number
  isHit: boolean
  start: number
}

/** Seed 000 literally from its claims, sharing only the shuffle with the feed. The feed's trace must equal it. */
export function traceReferencePrefetch(options: ConformanceOptions): string[] {
  const { sampleCount, nodeCount, k, arenaBytes, lengthOf, threshold } = options
  const trace: string[] = []
  let entries: Entry[] = []
  let used = 0
  /** From the start to the current position: removes hit runs together, moves unhit runs to the front together. */
  const evict = () => {
    const kept: Entry[] = []
    let to = 0
    for (let i = 0; i < entries.length; ) {
      const { isHit, start } = entries[i]!
      const run: Entry[] = []
      let end = start
      while (i < entries.length && entries[i]!.isHit === isHit && (isHit || entries[i]!.start === end)) {
        run.push(entries[i]!)
        end += entries[i++]!.length
      }
      const names = run.map((entry) => entry.sample).join(' ')
      if (isHit) trace.push(`evict ${names}`)
      else {
        if (start !== to) trace.push(`move ${names}`)
        for (const entry of run) {
          entry.start = to
          to += entry.length
          kept.push(entry)
        }
      }
    }
    entries = kept
    used = to
  }
  const store = (sample: number): boolean => {
    const length = lengthOf(sample)
    const hasHit = () => entries.some((entry) => entry.isHit)
    if (used >= threshold * arenaBytes && hasHit()) evict()
    if (used + length > arenaBytes && hasHit()) evict()
    if (used + length > arenaBytes) return false
    entries.push({ sample, length, isHit: false, start: used })
    used += length
    return true
  }
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    const sequence = [...shuffleSamples({ sampleCount, seed: options.seed, epoch })]
    const lists = Array.from({ length: nodeCount }, (_, node) =>
      sequence.filter((i) => i % nodeCount === node),
    )
    for (const sample of sequence) {
      const entry = entries.find((candidate) => candidate.sample === sample && !candidate.isHit)
      if (entry) {
        entry.isHit = true
        trace.push(`hit ${sample}`)
        continue
      }
      const list = lists[sample % nodeCount]!
      const request = [list.shift()!]
      while (request.length < k && list.length > 0 && store(list[0]!)) request.push(list.shift()!)
      trace.push(`request ${sample % nodeCount}: ${request.join(' ')}`, `miss ${sample}`)
    }
  }
  return trace
}
