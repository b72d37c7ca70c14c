import type { Fault } from '../../testing/fault-proxy.js'
import type { Random } from '../crash/seeded-random.js'

/** A dataset in the bucket: how many objects of how many bytes, and how often a job asks for it. */
export const SOURCES = {
  large: { objects: 1, bytes: 26_000_000, weight: 1 },
  few: { objects: 3, bytes: 3_000_000, weight: 3 },
  pair: { objects: 2, bytes: 5_000_000, weight: 3 },
  many: { objects: 60, bytes: 20_000, weight: 4 },
  single: { objects: 1, bytes: 8_000_000, weight: 2 },
  mixed: { objects: 20, bytes: 300_000, weight: 3 },
  tiny: { objects: 2, bytes: 10, weight: 4 },
} as const
export type SourceName = keyof typeof SOURCES
export const SOURCE_NAMES = Object.keys(SOURCES) as readonly SourceName[]
const WEIGHTED = SOURCE_NAMES.flatMap((name) => Array.from({ length: SOURCES[name].weight }, () => name))

export const NODES = ['node-a', 'node-b', 'node-c'] as const
export type NodeName = (typeof NODES)[number]

/** A job: it has a dataset prepared, reads it, keeps it for a while, reads it again and lets it go. */
export interface PlannedJob {
  readonly task: string
  readonly node: NodeName
  readonly dataset: SourceName
  /** `run`: the lease is that of the process, and ends with it. */
  readonly way: 'prepare' | 'refresh' | 'run' | 'everywhere'
  readonly holdMs: number
  /** After how long its first commands are killed, ms. */
  readonly killsAfterMs: readonly number[]
}

/** What goes wrong, or is done by an operator. */
export type PlannedEvent =
  | { readonly kind: 'agent killed' | 'agent stopped' | 'agent paused'; readonly node: NodeName }
  | { readonly kind: 'record crashed' | 'record restarted'; readonly awayMs: number }
  | { readonly kind: 'store faulty'; readonly fault: Fault; readonly forMs: number }
  /** `of`: whose clock; all nodes' together with the record's own is a machine that slept. */
  | {
      readonly kind: 'clock step'
      readonly of: 'record' | NodeName | 'everybody'
      readonly bySeconds: number
    }
  | { readonly kind: 'source changed'; readonly dataset: SourceName }
  | { readonly kind: 'operator'; readonly node: NodeName; readonly words: readonly string[] }
  /** Everybody ends, and cleans up. */
  | { readonly kind: 'settle' }

/** Jobs and events of a run, each with its time in ms from the beginning. */
export interface SoakPlan {
  readonly jobs: readonly { readonly atMs: number; readonly job: PlannedJob }[]
  readonly events: readonly { readonly atMs: number; readonly event: PlannedEvent }[]
}

/** A day in half an hour. */
const SIMULATED_PER_REAL = 48
/** A lease of three hours lasts for five of these, whatever the length of a run: no job is held for that long. */
const STEP_EVERY_MS = 40_000
const EVENT_EVERY_MS = 4000
const SETTLE_EVERY_MS = 300_000

/** How much time passes by the clocks of a run of `minutes`, hours: those of a day in 30 minutes, less in less. */
export function simulatedHours(minutes: number): number {
  return (minutes * SIMULATED_PER_REAL) / 60
}

/** Plans a run of `minutes`: all clocks step forward by what the simulated time is longer, half an hour at a time. */
export function planSoak(random: Random, { minutes, jobs }: { minutes: number; jobs: number }): SoakPlan {
  const lengthMs = minutes * 60_000
  const planned = Array.from({ length: jobs }, (_, index) => ({
    atMs: Math.round((index * lengthMs * 0.96) / jobs),
    job: planJob(random, index),
  }))
  const events: { atMs: number; event: PlannedEvent }[] = []
  for (let atMs = 3000; atMs < lengthMs - 20_000; atMs += 1 + random.below(2 * EVENT_EVERY_MS))
    events.push({ atMs, event: planEvent(random, atMs > lengthMs / 2) })
  const bySeconds = Math.round((STEP_EVERY_MS / 1000) * (SIMULATED_PER_REAL - 1))
  for (let beginMs = 0; beginMs < lengthMs; beginMs += STEP_EVERY_MS) {
    const atMs = Math.round(beginMs + (STEP_EVERY_MS * random.below(100)) / 100)
    events.push({ atMs, event: { kind: 'clock step', of: 'everybody', bySeconds } })
  }
  for (let atMs = Math.min(SETTLE_EVERY_MS, lengthMs / 2); atMs < lengthMs - 60_000; atMs += SETTLE_EVERY_MS)
    events.push({ atMs, event: { kind: 'settle' } })
  return { jobs: planned, events: events.toSorted((a, b) => a.atMs - b.atMs) }
}

function planJob(random: Random, index: number): PlannedJob {
  const kills = random.chance(0.15) ? 1 + random.below(2) : 0
  return {
    task: `job-${index}`,
    node: random.pick(NODES),
    dataset: random.pick(WEIGHTED),
    way: random.pick([
      'prepare',
      'prepare',
      'prepare',
      'prepare',
      'prepare',
      'run',
      'run',
      'refresh',
      'everywhere',
    ]),
    holdMs: 500 + random.below(9000),
    killsAfterMs: Array.from({ length: kills }, () => 100 + random.below(1500)),
  }
}

/** The agents of all nodes but the first are left alone in the second half, so that their memory can be judged. */
function planEvent(random: Random, isLate: boolean): PlannedEvent {
  const node = random.pick(NODES)
  const disturbed = isLate ? NODES[0] : node
  switch (random.below(12)) {
    case 0:
    case 1:
      return { kind: 'agent killed', node: disturbed }
    case 2:
      return { kind: 'agent stopped', node: disturbed }
    case 3:
      return { kind: 'agent paused', node }
    case 4:
      return { kind: random.pick(['record crashed', 'record restarted']), awayMs: 500 + random.below(4000) }
    case 5:
    case 6:
    case 7:
      return { kind: 'store faulty', fault: planFault(random), forMs: 1000 + random.below(7000) }
    case 8:
      return {
        kind: 'clock step',
        of: random.pick([...NODES, 'record']),
        bySeconds: random.pick([-300, -20, 15, 60, 3600]),
      }
    case 9:
      return { kind: 'source changed', dataset: random.pick(WEIGHTED) }
    default:
      return { kind: 'operator', node, words: planCommand(random) }
  }
}

function planFault(random: Random): Fault {
  const afterBytes = random.below(200_000)
  return random.pick<Fault>([
    { kind: 'reset', afterBytes },
    { kind: 'status', status: 503, code: 'SlowDown' },
    { kind: 'status', status: 500, code: 'InternalError' },
    { kind: 'truncate', afterBytes },
    { kind: 'flip', atByte: random.below(10_000) },
    { kind: 'stall', afterBytes },
    { kind: 'delay', delayMs: 200 + random.below(2000) },
    { kind: 'throttle', bytesPerSecond: 500_000 },
  ])
}

function planCommand(random: Random): readonly string[] {
  return random.pick([
    ['evict', random.pick(WEIGHTED), '--yes'],
    ['evict', '--free', '5MB', '--yes'],
    ['cleanup', '--abandoned-after', '1m'],
    ['verify', random.pick(WEIGHTED), '--repair'],
    ['status', '--json'],
    ['doctor'],
  ])
}
