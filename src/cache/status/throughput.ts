import type { StatusSnapshot } from './compose-status.js'
import { findRate, noteProgress, type ProgressHistory } from './transfer-rates.js'

/** Bytes per second at equal intervals, oldest first; at most `THROUGHPUT_SAMPLES`. */
type Rates = readonly number[]

/** Recent staging throughput. */
export interface Throughput {
  /** The progress of each copy under way. */
  readonly progress: ProgressHistory
  /** Total over all nodes. */
  readonly total: Rates
  /** By node; leaves out nodes that staged nothing in all that time. */
  readonly byNode: ReadonlyMap<string, Rates>
  /** When the last sample was taken, Unix epoch in ms. */
  readonly sampledAtMs: number
}

/** Five minutes at one sample every `SAMPLE_MS`. */
export const THROUGHPUT_SAMPLES = 150
const SAMPLE_MS = 2000

/** Before the first sample. */
export const NO_THROUGHPUT: Throughput = { progress: new Map(), total: [], byNode: new Map(), sampledAtMs: 0 }

/** Adds a snapshot. Times without one are filled with the previous rate: a rate is a mean over 15 s anyway. */
export function noteThroughput(
  before: Throughput,
  snapshot: Pick<StatusSnapshot, 'takenAtMs' | 'transfers'>,
): Throughput {
  const progress = noteProgress(before.progress, snapshot)
  const isFirst = before.sampledAtMs === 0
  const steps = isFirst ? 1 : Math.floor((snapshot.takenAtMs - before.sampledAtMs) / SAMPLE_MS)
  if (steps < 1) return { ...before, progress }
  const rates = new Map<string, number>()
  for (const { node, copyId } of snapshot.transfers)
    rates.set(node, (rates.get(node) ?? 0) + (findRate(progress, copyId) ?? 0))
  const byNode = new Map<string, Rates>()
  for (const node of new Set([...before.byNode.keys(), ...rates.keys()])) {
    const samples = extend(before.byNode.get(node) ?? [], rates.get(node) ?? 0, steps)
    if (rates.has(node) || samples.some((rate) => rate > 0)) byNode.set(node, samples)
  }
  const sum = rates.values().reduce((all, rate) => all + rate, 0)
  const sampledAtMs = isFirst ? snapshot.takenAtMs : before.sampledAtMs + steps * SAMPLE_MS
  return { progress, total: extend(before.total, sum, steps), byNode, sampledAtMs }
}

function extend(samples: Rates, rate: number, steps: number): Rates {
  const last = samples.at(-1) ?? 0
  const missed = Array.from({ length: Math.min(steps, THROUGHPUT_SAMPLES) - 1 }, () => last)
  return [...samples, ...missed, rate].slice(-THROUGHPUT_SAMPLES)
}
