import { copyUs } from './candidates.js'
import { DeviceLedger } from './device-ledger.js'
import { findLifetimes, type Lifetime } from './lifetimes.js'
import type { MemoryPlan, PlannedMove } from './memory-plan.js'
import type { MemoryProfile } from './profile.js'
import { formatEvent, layOutTimeline, type StepEvent } from './timeline.js'

/** What goes wrong on purpose. Every function gets a number that is unique per copy or event of the step. */
export interface DeviceFaults {
  /** How many times longer a copy takes; default 1. */
  readonly copySlowdown?: ((copy: number) => number) | undefined
  /** How many times longer an event computes; default 1. */
  readonly computeSlowdown?: ((event: number) => number) | undefined
  /** How often a copy fails and is done again before it succeeds; default 0. */
  readonly copyFailures?: ((copy: number) => number) | undefined
}

/** How a plan did on the simulated device. Times in microseconds. */
export interface Simulation {
  readonly stepUs: number
  readonly computeUs: number
  readonly stallUs: number
  readonly peakBytes: number
  readonly peakAt: string
  readonly movedBytes: number
  readonly copies: number
  /** Broken promises: over the budget, used before it arrived, counts below zero or left over. Empty = sound. */
  readonly violations: readonly string[]
  /** Highest bytes during each event; when each began, and last when the step ended; when each copy ran. */
  readonly bytesPerEvent: readonly number[]
  readonly startUs: readonly number[]
  readonly copyTimes: readonly CopyTime[]
}

/** One copy of the simulated step. */
export interface CopyTime {
  readonly direction: 'out' | 'in'
  readonly storage: number
  readonly bytes: number
  readonly fromUs: number
  readonly toUs: number
}

/**
 * Runs one step on a device with a compute queue, a copy queue in each direction and `capacityBytes` of memory.
 * It allocates, copies and frees by itself and believes nothing the plan predicts: the plan only says when.
 * With `isEager`, memory of a finished copy out is free at once, not first at the planned wait.
 */
export function simulatePlan(
  profile: MemoryProfile,
  plan: Pick<MemoryPlan, 'moves' | 'arenas' | 'options'>,
  options: {
    readonly capacityBytes: number
    readonly faults?: DeviceFaults
    readonly isEager?: boolean
    /** Lifetimes already found for this profile and `plan.options.reuse`; found here when absent. */
    readonly lifetimes?: readonly Lifetime[]
  },
): Simulation {
  const timeline = layOutTimeline(profile)
  const lifetimes = options.lifetimes ?? findLifetimes(profile, timeline, plan.options.reuse)
  const queues = createQueues(profile, options.faults ?? {})
  const ledger = new DeviceLedger(profile.nonTorchBytes, options.capacityBytes)
  const schedule = indexSchedule(timeline.events.length, lifetimes, plan)
  const reload = plan.arenas.reload
  const violations: string[] = []
  const outDoneUs = new Map<PlannedMove, number>()
  const inDoneUs = new Map<number, number>()
  const counts = new Map(lifetimes.map(({ storage, refs }) => [storage, refs]))
  const bytesPerEvent: number[] = []
  const startUs: number[] = []
  let pending: PlannedMove[] = []
  let nowUs = 0
  let stallUs = 0
  let computeUs = 0
  let peakAt = ''
  let peakBytes = 0
  let movedBytes = 0
  const waitFor = (timeUs: number) => {
    if (timeUs <= nowUs) return
    stallUs += timeUs - nowUs
    nowUs = timeUs
  }
  const startOut = (move: PlannedMove) => {
    if (move.kind === 'param' || move.kind === 'opt_state') outDoneUs.set(move, nowUs)
    else {
      outDoneUs.set(move, queues.out(move, nowUs))
      movedBytes += move.bytes
    }
    pending.push(move)
  }
  for (const move of schedule.absentAtStart) ledger.drop(move.storage)
  for (const event of timeline.events) {
    const e = event.index
    const name = (storage: number) => `${formatEvent(profile, event)}: storage ${storage}`
    for (const move of pending) {
      const doneUs = outDoneUs.get(move)!
      if (move.freeBy === e) waitFor(doneUs)
      if (move.freeBy === e || (options.isEager && doneUs <= nowUs)) ledger.drop(move.storage)
    }
    pending = pending.filter(({ storage }) => ledger.has(storage))
    if (reload.mode === 'arena' && reload.from === e) ledger.takeArena(reload.bytes)
    for (const move of schedule.insAt[e]!) {
      if (ledger.has(move.storage)) violations.push(`${name(move.storage)} comes back but never left`)
      ledger.put(move.storage, move.bytes, move.reloadOffset !== null)
      inDoneUs.set(move.storage, queues.in(move, Math.max(nowUs, outDoneUs.get(move) ?? 0)))
      movedBytes += move.bytes
    }
    for (const { storage, bytes } of schedule.bornAt[e]!) {
      if (!ledger.has(storage) && !schedule.isAbsentAtStart.has(storage)) ledger.put(storage, bytes, false)
    }
    for (const { storage } of schedule.usedAt[e]!) {
      waitFor(inDoneUs.get(storage) ?? 0)
      if (!ledger.has(storage)) violations.push(`${name(storage)} is used but not on the device`)
    }
    const used = ledger.usedBytes
    bytesPerEvent.push(used)
    startUs.push(nowUs)
    if (used > peakBytes) {
      peakBytes = used
      peakAt = formatEvent(profile, event)
    }
    if (used > options.capacityBytes)
      violations.push(`${formatEvent(profile, event)}: ${used} bytes of ${options.capacityBytes}`)
    const durationUs = event.durationUs * (options.faults?.computeSlowdown?.(e) ?? 1)
    nowUs += durationUs
    computeUs += durationUs
    countUses(event, schedule.usedAt[e]!, counts, violations)
    for (const { storage } of schedule.diesAt[e]!) ledger.drop(storage)
    for (const move of schedule.outsAfter[e]!) startOut(move)
    if (reload.mode === 'arena' && reload.to === e) violations.push(...ledger.returnArena())
  }
  for (const [storage, count] of counts)
    if (count !== 0) violations.push(`end of step: storage ${storage} has count ${count}, not 0`)
  return {
    stepUs: nowUs,
    computeUs,
    stallUs,
    peakBytes,
    peakAt,
    movedBytes,
    copies: queues.times.length,
    violations,
    bytesPerEvent,
    startUs: [...startUs, nowUs],
    copyTimes: queues.times,
  }

  function countUses(
    event: StepEvent,
    used: readonly Lifetime[],
    remaining: Map<number, number>,
    problems: string[],
  ): void {
    if (event.index < timeline.forwardCount) return
    for (const { storage, born } of used) {
      if (born === event.index) continue
      const count = remaining.get(storage)! - 1
      if (count < 0) problems.push(`${formatEvent(profile, event)}: count of storage ${storage} below 0`)
      remaining.set(storage, count)
    }
  }
}

function indexSchedule(eventCount: number, lifetimes: readonly Lifetime[], plan: Pick<MemoryPlan, 'moves'>) {
  const rows = <Item>() => Array.from({ length: eventCount + 1 }, (): Item[] => [])
  const schedule = {
    bornAt: rows<Lifetime>(),
    usedAt: rows<Lifetime>(),
    diesAt: rows<Lifetime>(),
    insAt: rows<PlannedMove>(),
    outsAfter: rows<PlannedMove>(),
    absentAtStart: [] as PlannedMove[],
    isAbsentAtStart: new Set<number>(),
  }
  for (const move of plan.moves) {
    schedule.insAt[move.inAt]!.push(move)
    if (move.outAfter >= 0) schedule.outsAfter[move.outAfter]!.push(move)
    else {
      schedule.absentAtStart.push(move)
      schedule.isAbsentAtStart.add(move.storage)
    }
  }
  // First needed, first copied: what executors do with copies in that may start at once.
  for (const row of schedule.insAt) row.sort((a, b) => a.useAt - b.useAt || a.storage - b.storage)
  for (const lifetime of lifetimes) {
    schedule.bornAt[lifetime.from]!.push(lifetime)
    for (const use of lifetime.uses) schedule.usedAt[use]!.push(lifetime)
    schedule.diesAt[lifetime.to]!.push(lifetime)
  }
  return schedule
}

function createQueues(profile: MemoryProfile, faults: DeviceFaults) {
  const { d2hGBs, h2dGBs, bothGBs, copyLatencyUs } = profile.device
  let outFreeUs = 0
  let inFreeUs = 0
  const times: CopyTime[] = []
  const run = (bytes: number, startUs: number, lane: { gbs: number; isOtherBusy: boolean }) => {
    const gbs = lane.isOtherBusy ? Math.min(lane.gbs, bothGBs / 2) : lane.gbs
    const tries = 1 + (faults.copyFailures?.(times.length) ?? 0)
    const slowdown = faults.copySlowdown?.(times.length) ?? 1
    return startUs + tries * slowdown * copyUs(bytes, gbs, copyLatencyUs)
  }
  return {
    times,
    out({ storage, bytes }: PlannedMove, nowUs: number): number {
      const startUs = Math.max(nowUs, outFreeUs)
      outFreeUs = run(bytes, startUs, { gbs: d2hGBs, isOtherBusy: inFreeUs > startUs })
      times.push({ direction: 'out', storage, bytes, fromUs: startUs, toUs: outFreeUs })
      return outFreeUs
    },
    in({ storage, bytes }: PlannedMove, readyUs: number): number {
      const startUs = Math.max(readyUs, inFreeUs)
      inFreeUs = run(bytes, startUs, { gbs: h2dGBs, isOtherBusy: outFreeUs > startUs })
      times.push({ direction: 'in', storage, bytes, fromUs: startUs, toUs: inFreeUs })
      return inFreeUs
    },
  }
}
