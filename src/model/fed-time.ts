import type { RecordEvent } from './record-event.js'
import { readStepBlocks, type StepBlocks } from './step-blocks.js'

/** How the trainers of one feed spent a stretch of time; each millisecond counts once for every GPU of its trainer. */
export interface FedTime {
  /** How long ago the stretch began, in ms. */
  readonly sinceAgoMs: number
  /** GPUs whose trainers told. */
  readonly gpus: number
  /** GPU-milliseconds of the stretch, waits included. */
  readonly gpuMs: number
  /**
   * GPU-milliseconds of waits: `transform` (the user's own code), `start` (until the feed answered), `disk`, `store`,
   * `memory` (of the feed), `order` (being made), `feed` (the feed's own work), or the name of a storage node. The
   * suffix ` of rank 3` marks time in which other ranks waited for rank 3, which waited for that cause.
   */
  readonly waits: Readonly<Record<string, number>>
  /** Absent if all ranks of the job read from this feed. */
  readonly steps?: StepBlocks | undefined
}

/** Most kinds of waits that one event keeps, largest first. */
export const MAX_FED_WAITS = 64

/** Names the time in which ranks waited for another rank, which waited for `culprit`. */
export function nameHoldUp(culprit: string, rank: number): string {
  return `${culprit} of rank ${rank}`
}

/** Splits the name of a wait into its cause and, if GPUs waited for another rank, that rank. */
export function parseCulprit(name: string): { readonly culprit: string; readonly rank: number | undefined } {
  const [, culprit = name, rank] = /^(.+) of rank (\d+)$/.exec(name) ?? []
  return { culprit, rank: rank === undefined ? undefined : Number(rank) }
}

/** The sum of all waits, in GPU-milliseconds. */
export function sumWaits(waits: FedTime['waits']): number {
  return Object.values(waits).reduce((sum, gpuMs) => sum + gpuMs, 0)
}

/** The event that keeps a stretch which ends at `atMs`. */
export function describeFedTime(
  { sinceAgoMs, gpus, gpuMs, waits, steps }: FedTime,
  atMs: number,
): Pick<RecordEvent, 'kind' | 'atMs' | 'reason' | 'detail'> {
  const share = gpuMs > 0 ? Math.round((100 * sumWaits(waits)) / gpuMs) : 0
  const reason = `training waited ${share}% of ${(gpuMs / 60_000).toFixed(1)} GPU-minutes`
  const detail = { sinceMs: atMs - sinceAgoMs, gpus, gpuMs, waits, ...(steps && { steps }) }
  return { kind: 'fed', atMs, reason, detail }
}

/** Reads what `describeFedTime` wrote; `sinceAgoMs` is counted from the event. */
export function readFedTime({ atMs, detail }: Pick<RecordEvent, 'atMs' | 'detail'>): FedTime {
  const steps = readStepBlocks(detail.steps)
  const waits = Object.entries((detail.waits ?? {}) as Readonly<Record<string, unknown>>)
  return {
    sinceAgoMs: atMs - Number(detail.sinceMs ?? atMs),
    gpus: Number(detail.gpus ?? 1),
    gpuMs: Number(detail.gpuMs ?? 0),
    waits: Object.fromEntries(waits.map(([culprit, gpuMs]) => [culprit, Number(gpuMs)])),
    ...(steps && { steps }),
  }
}
