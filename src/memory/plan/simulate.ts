import { copyUs } from './candidates.js'
import { DeviceLedger } from './device-ledger.js'
import type { Lifetime } from './lifetimes.js'
import type { MemoryPlan, PlannedMove } from './memory-plan.js'
import type { MemoryProfile } from './profile.js'
import { layOutStep, type ProfiledStep } from './profiled-step.js'
import { formatEvent, type StepEvent } from './timeline.js'

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
    /** Gives up, with a violation, when the stall exceeds this: whoever compares plans needs no more of a bad one. */
    readonly mostStallUs?: number | undefined
    /** The step of this profile and `plan.options.reuse`; laid out here when absent. */
    readonly step?: ProfiledStep
  },
): Simulation {
  const step = options.step ?? layOutStep(profile, plan.options.reuse)
  const { timeline } = step
  const queues = createQueues(profile, options.faults ?? {})
  const ledger = new DeviceLedger(profile.nonTorchBytes, options.capacityBytes)
  const schedule = indexMoves(plan.moves)
  const reload = plan.arenas.reload
  const violations: string[] = []
  const outDoneUs = new Map<PlannedMove, number>()
  const inDoneUs = new Map<number, number>()
  const counts = new Map(plan.moves.map(({ storage, refs }) => [storage, refs]))
  const bytesPerEvent: number[] = []
  const startUs: number[] = []
  let copyingOut: PlannedMove[] = [] // looked through only where memory is free before the planned wait
  let nowUs = 0
  let stallUs = 0
  let computeUs = 0
  let peakEvent: StepEvent | undefined
  let peakBytes = 0
  let movedBytes = 0
  const waitFor = (timeUs: number) => {
    if (timeUs <= nowUs) return
    stallUs += timeUs - nowUs
    nowUs = timeUs
  }
  const mostStallUs = options.mostStallUs ?? Number.POSITIVE_INFINITY
  const startOut = (move: PlannedMove) => {
    if (move.kind === 'param' || move.kind === 'opt_state') outDoneUs.set(move, nowUs)
    else {
      outDoneUs.set(move, queues.out(move, nowUs))
      movedBytes += move.bytes
    }
    if (options.isEager) copyingOut.push(move)
  }
  for (const move of schedule.absentAtStart) ledger.drop(move.storage)
  for (const event of timeline.events) {
    const e = event.index
    if (stallUs > mostStallUs) {
      violations.push(`${formatEvent(profile, event)}: given up after a stall of ${stallUs} microseconds`)
      break
    }
    const name = (storage: number) => `${formatEvent(profile, event)}: storage ${storage}`
    for (const move of schedule.freesAt.get(e) ?? []) {
      const doneUs = outDoneUs.get(move)
      if (doneUs === undefined) continue
      waitFor(doneUs)
      ledger.drop(move.storage)
    }
    copyingOut = copyingOut.filter((move) => {
      const isDone = outDoneUs.get(move)! <= nowUs
      if (isDone) ledger.drop(move.storage)
      return !isDone && ledger.has(move.storage)
    })
    if (reload.mode === 'arena' && reload.from === e) ledger.takeArena(reload.bytes)
    for (const move of schedule.insAt.get(e) ?? []) {
      if (ledger.has(move.storage)) violations.push(`${name(move.storage)} comes back but never left`)
      ledger.put(move.storage, move.bytes, move.reloadOffset !== null)
      inDoneUs.set(move.storage, queues.in(move, Math.max(nowUs, outDoneUs.get(move) ?? 0)))
      movedBytes += move.bytes
    }
    for (const { storage, bytes } of step.bornAt[e]!) {
      if (!ledger.has(storage) && !schedule.isAbsentAtStart.has(storage)) ledger.put(storage, bytes, false)
    }
    for (const { storage } of step.usedAt[e]!) {
      waitFor(inDoneUs.get(storage) ?? 0)
      if (!ledger.has(storage)) violations.push(`${name(storage)} is used but not on the device`)
    }
    const used = ledger.usedBytes
    bytesPerEvent.push(used)
    startUs.push(nowUs)
    if (used > peakBytes) {
      peakBytes = used
      peakEvent = event
    }
    if (used > options.capacityBytes)
      violations.push(`${formatEvent(profile, event)}: ${used} bytes of ${options.capacityBytes}`)
    const durationUs = event.durationUs * (options.faults?.computeSlowdown?.(e) ?? 1)
    nowUs += durationUs
    computeUs += durationUs
    countUses(event, step.usedAt[e]!, counts, violations)
    for (const { storage } of step.diesAt[e]!) ledger.drop(storage)
    for (const move of schedule.outsAfter.get(e) ?? []) startOut(move)
    if (reload.mode === 'arena' && reload.to === e) violations.push(...ledger.returnArena())
  }
  for (const [storage, count] of counts)
    if (count !== 0) violations.push(`end of step: storage ${storage} has count ${count}, not 0`)
  return {
    stepUs: nowUs,
    computeUs,
    stallUs,
    peakBytes,
    peakAt: peakEvent ? formatEvent(profile, peakEvent) : '',
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
      const before = remaining.get(storage)
      if (before === undefined || born === event.index) continue
      const count = before - 1
      if (count < 0) problems.push(`${formatEvent(profile, event)}: count of storage ${storage} below 0`)
      remaining.set(storage, count)
    }
  }
}

/** The moves by the event at which something happens to them. */
function indexMoves(moves: readonly PlannedMove[]) {
  // First needed, first copied: what executors do with copies in that may start at once.
  const byUse = moves.toSorted((a, b) => a.useAt - b.useAt || a.storage - b.storage)
  const absentAtStart = moves.filter(({ outAfter }) => outAfter < 0)
  return {
    absentAtStart,
    isAbsentAtStart: new Set(absentAtStart.map(({ storage }) => storage)),
    outsAfter: Map.groupBy(moves, ({ outAfter }) => outAfter),
    freesAt: Map.groupBy(moves, ({ freeBy }) => freeBy),
    insAt: Map.groupBy(byUse, ({ inAt }) => inAt),
  }
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
