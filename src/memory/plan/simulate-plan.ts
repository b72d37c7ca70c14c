import type { MemoryProfile } from '../step/profile.js'
import { layOutStep, type ProfiledStep } from '../step/profiled-step.js'
import { formatEvent, type StepEvent } from '../step/timeline.js'
import { type CopyFaults, CopyQueues, type CopyTime } from './copy-queues.js'
import { DeviceLedger } from './device-ledger.js'
import type { MemoryPlan, PlannedMove } from './plan-format.js'

/** Faults to inject. Every function gets a number that is unique per copy or event of the step. */
export interface DeviceFaults extends CopyFaults {
  /** How many times longer an event computes; default 1. */
  readonly computeSlowdown?: ((event: number) => number) | undefined
}

/** The parts of a plan that the simulated device runs by. */
export type SimulatedPlan = Pick<MemoryPlan, 'moves' | 'arenas' | 'options'>

/** The simulated device, and how long to tolerate a plan. */
export interface SimulationOptions {
  readonly capacityBytes: number
  readonly faults?: DeviceFaults
  /** Whether the memory of a finished copy out is free at once, not only at the planned wait. Default false. */
  readonly isEager?: boolean
  /** Gives up, with a violation, when the stall exceeds this: a comparison needs to know no more of a bad plan. */
  readonly maxStallUs?: number | undefined
  /** The step of this profile and `plan.options.reuse`; laid out by the simulation if absent. */
  readonly step?: ProfiledStep
}

/** A plan's result on the simulated device. Times in microseconds. */
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
  /** Highest bytes during each event; start of each event and, as last entry, end of the step; times of each copy. */
  readonly bytesPerEvent: readonly number[]
  readonly startUs: readonly number[]
  readonly copyTimes: readonly CopyTime[]
}

/**
 * Runs one step on a device with a compute queue, a copy queue in each direction and `capacityBytes` of memory. It
 * allocates, copies and frees by itself and trusts no prediction of the plan: the plan only says when.
 */
export function simulatePlan(
  profile: MemoryProfile,
  plan: SimulatedPlan,
  options: SimulationOptions,
): Simulation {
  const step = options.step ?? layOutStep(profile, { canReuse: plan.options.reuse })
  return new SimulatedStep(profile, plan, { ...options, step }).run()
}

/** One running step. */
class SimulatedStep {
  readonly #profile: MemoryProfile
  readonly #options: SimulationOptions
  readonly #step: ProfiledStep
  readonly #schedule: ReturnType<typeof indexMoves>
  readonly #reload: MemoryPlan['arenas']['reload']
  readonly #queues: CopyQueues
  readonly #ledger: DeviceLedger
  readonly #outDoneUs = new Map<PlannedMove, number>()
  readonly #inDoneUs = new Map<number, number>()
  /** Remaining backward uses of each moved storage. */
  readonly #counts: Map<number, number>
  readonly #violations: string[] = []
  readonly #bytesPerEvent: number[] = []
  readonly #startUs: number[] = []
  /** Searched only if memory is freed before the planned wait. */
  #copyingOut: PlannedMove[] = []
  #nowUs = 0
  #stallUs = 0
  #computeUs = 0
  #movedBytes = 0

  constructor(
    profile: MemoryProfile,
    { moves, arenas }: SimulatedPlan,
    options: SimulationOptions & { readonly step: ProfiledStep },
  ) {
    this.#profile = profile
    this.#options = options
    this.#step = options.step
    this.#schedule = indexMoves(moves)
    this.#reload = arenas.reload
    this.#queues = new CopyQueues(profile.device, options.faults ?? {})
    this.#ledger = new DeviceLedger(profile.nonTorchBytes)
    this.#counts = new Map(moves.map(({ storage, refs }) => [storage, refs]))
  }

  run(): Simulation {
    const { maxStallUs = Number.POSITIVE_INFINITY } = this.#options
    for (const { storage } of this.#schedule.absentAtStart) this.#ledger.drop(storage)
    for (const event of this.#step.timeline.events) {
      if (this.#stallUs > maxStallUs) {
        this.#complain(event, `given up after a stall of ${this.#stallUs} microseconds`)
        break
      }
      this.#freeMemory(event)
      this.#bringIn(event)
      this.#touchStorages(event)
      this.#compute(event)
      this.#letGo(event)
    }
    for (const [storage, count] of this.#counts)
      if (count !== 0) this.#violations.push(`end of step: storage ${storage} has count ${count}, not 0`)
    return this.#sumUp()
  }

  /** Waits for the copies out that must have ended by now, and frees their memory. */
  #freeMemory({ index }: StepEvent): void {
    for (const move of this.#schedule.freesAt.get(index) ?? []) {
      const doneUs = this.#outDoneUs.get(move)
      if (doneUs === undefined) continue
      this.#waitFor(doneUs)
      this.#ledger.drop(move.storage)
    }
    this.#copyingOut = this.#copyingOut.filter((move) => {
      const isDone = this.#outDoneUs.get(move)! <= this.#nowUs
      if (isDone) this.#ledger.drop(move.storage)
      return !isDone
    })
  }

  /** Starts the copies in that begin with this event. */
  #bringIn(event: StepEvent): void {
    if (this.#reload.mode === 'arena' && this.#reload.from === event.index)
      this.#ledger.takeArena(this.#reload.bytes)
    for (const move of this.#schedule.insAt.get(event.index) ?? []) {
      const { storage, bytes, reloadOffset } = move
      if (this.#ledger.has(storage)) this.#complain(event, `storage ${storage} comes back but never left`)
      this.#ledger.put({ storage, bytes, isInArena: reloadOffset !== null })
      const readyUs = Math.max(this.#nowUs, this.#outDoneUs.get(move) ?? 0)
      this.#inDoneUs.set(storage, this.#queues.copy('in', move, readyUs))
      this.#movedBytes += bytes
    }
  }

  /** Allocates storages that begin and waits for those that are read. */
  #touchStorages(event: StepEvent): void {
    for (const { storage, bytes } of this.#step.bornAt[event.index]!) {
      const isElsewhere = this.#schedule.isAbsentAtStart.has(storage)
      if (!this.#ledger.has(storage) && !isElsewhere) this.#ledger.put({ storage, bytes, isInArena: false })
    }
    for (const { storage } of this.#step.usedAt[event.index]!) {
      this.#waitFor(this.#inDoneUs.get(storage) ?? 0)
      if (!this.#ledger.has(storage))
        this.#complain(event, `storage ${storage} is used but not on the device`)
    }
  }

  #compute(event: StepEvent): void {
    const { usedBytes } = this.#ledger
    this.#bytesPerEvent.push(usedBytes)
    this.#startUs.push(this.#nowUs)
    const { capacityBytes, faults } = this.#options
    if (usedBytes > capacityBytes) this.#complain(event, `${usedBytes} bytes of ${capacityBytes}`)
    const durationUs = event.durationUs * (faults?.computeSlowdown?.(event.index) ?? 1)
    this.#nowUs += durationUs
    this.#computeUs += durationUs
    if (event.index >= this.#step.timeline.forwardCount) this.#countUses(event)
  }

  #countUses(event: StepEvent): void {
    for (const { storage, born } of this.#step.usedAt[event.index]!) {
      const before = this.#counts.get(storage)
      if (before === undefined || born === event.index) continue
      if (before < 1) this.#complain(event, `count of storage ${storage} below 0`)
      this.#counts.set(storage, before - 1)
    }
  }

  /** Frees storages that end with this event and starts the copies out that follow it. */
  #letGo({ index }: StepEvent): void {
    for (const { storage } of this.#step.diesAt[index]!) this.#ledger.drop(storage)
    for (const move of this.#schedule.outsAfter.get(index) ?? []) this.#startOut(move)
    if (this.#reload.mode === 'arena' && this.#reload.to === index)
      this.#violations.push(...this.#ledger.returnArena())
  }

  #startOut(move: PlannedMove): void {
    // The host has parameters and optimizer state already.
    if (move.kind === 'param' || move.kind === 'opt_state') this.#outDoneUs.set(move, this.#nowUs)
    else {
      this.#outDoneUs.set(move, this.#queues.copy('out', move, this.#nowUs))
      this.#movedBytes += move.bytes
    }
    if (this.#options.isEager) this.#copyingOut.push(move)
  }

  #waitFor(timeUs: number): void {
    if (timeUs <= this.#nowUs) return
    this.#stallUs += timeUs - this.#nowUs
    this.#nowUs = timeUs
  }

  #complain(event: StepEvent, problem: string): void {
    this.#violations.push(`${formatEvent(this.#profile, event)}: ${problem}`)
  }

  #sumUp(): Simulation {
    const peakBytes = this.#bytesPerEvent.reduce((most, bytes) => Math.max(most, bytes), 0)
    const peakEvent = this.#step.timeline.events[this.#bytesPerEvent.indexOf(peakBytes)]
    return {
      stepUs: this.#nowUs,
      computeUs: this.#computeUs,
      stallUs: this.#stallUs,
      peakBytes,
      peakAt: peakEvent ? formatEvent(this.#profile, peakEvent) : '',
      movedBytes: this.#movedBytes,
      copies: this.#queues.times.length,
      violations: this.#violations,
      bytesPerEvent: this.#bytesPerEvent,
      startUs: [...this.#startUs, this.#nowUs],
      copyTimes: this.#queues.times,
    }
  }
}

/** The moves by the event at which something happens to them. */
function indexMoves(moves: readonly PlannedMove[]) {
  // First needed, first copied: as executors do with copies in that may start at once.
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
