import { formatCount } from '../../../model/format-count.js'
import type { UpdateMode } from './update-mode.js'

/** Identifies a push permanently: the same three numbers are the same gradient, however often they arrive. */
export interface PushKey {
  readonly rank: number
  /** Life of the server: grows by one at every restart. */
  readonly epoch: number
  /** Step of this rank, from 0. */
  readonly step: number
  /** Version of the parameters the gradient was computed with. */
  readonly baseVersion: number
}

/** The central node's state when a push arrives. */
export interface CentralState {
  readonly mode: UpdateMode
  readonly workers: number
  readonly epoch: number
  readonly version: number
  /** Last step applied per rank; −1 = none. */
  readonly lastSteps: readonly number[]
  /** Ranks that ssp mode has given up on: no rank waits for them. */
  readonly lost: ReadonlySet<number>
  /** Ranks whose gradient of the current sync step has arrived. */
  readonly arrived: ReadonlySet<number>
}

/** Steps that a worker may leave out, after refusals for example. A larger number is taken for a mistake, which would turn all its later steps into duplicates. */
const MAX_SKIPPED_STEPS = 1000

/** The action to take on a push. */
export type PushDecision =
  | { readonly kind: 'apply' }
  | { readonly kind: 'collect' }
  | { readonly kind: 'duplicate' }
  | {
      readonly kind: 'refuse'
      readonly reason: 'rank' | 'epoch' | 'stale' | 'ahead' | 'skipped'
      readonly message: string
    }

/**
 * Decides on a push before its gradient is looked at.
 *
 * | push                                        | sync      | ssp:k     | async     |
 * | ------------------------------------------- | --------- | --------- | --------- |
 * | of another epoch                            | refuse    | refuse    | refuse    |
 * | step applied or collected already           | duplicate | duplicate | duplicate |
 * | base version is not the present one         | refuse    | if older than k·P | apply |
 * | step more than k beyond the slowest rank    | –         | refuse    | apply     |
 * | step far beyond the rank's own last one     | refuse    | refuse    | refuse    |
 */
export function decidePush(state: CentralState, push: PushKey): PushDecision {
  const { mode, workers, epoch, version, lastSteps } = state
  if (push.rank >= workers || push.rank < 0)
    return refuse('rank', `rank ${push.rank} of a job of ${formatCount(workers, 'worker')}`)
  if (push.epoch !== epoch)
    return refuse('epoch', `rank ${push.rank} pushes for epoch ${push.epoch}, the server is in ${epoch}`)
  const last = lastSteps[push.rank]!
  if (push.step <= last) return { kind: 'duplicate' }
  // A sync rank may have missed steps that went on without it.
  const expected = mode.kind === 'sync' ? Math.max(last + 1, version) : last + 1
  if (push.step > expected + MAX_SKIPPED_STEPS)
    return refuse('skipped', `rank ${push.rank} pushes step ${push.step}, its next one is ${expected}`)
  if (mode.kind === 'sync') {
    if (push.baseVersion !== version)
      return refuse('stale', `base version ${push.baseVersion}, the server has ${version}`)
    return state.arrived.has(push.rank) ? { kind: 'duplicate' } : { kind: 'collect' }
  }
  if (push.baseVersion > version)
    return refuse('stale', `base version ${push.baseVersion} is from the future, the server has ${version}`)
  if (mode.kind === 'ssp') {
    const age = version - push.baseVersion
    if (age > mode.bound * workers)
      return refuse(
        'stale',
        `base version ${push.baseVersion} is ${age} behind ${version}, ${mode.bound * workers} are permitted`,
      )
    const slowest = Math.min(...findCounting(state).map((rank) => lastSteps[rank]!))
    if (push.step - slowest - 1 > mode.bound)
      return refuse(
        'ahead',
        `step ${push.step} is more than ${mode.bound} beyond the slowest rank, at ${slowest}`,
      )
  }
  return { kind: 'apply' }
}

/** Whether `rank` may begin `step`: in ssp mode it waits while the slowest rank is more than k steps behind. */
export function mayBegin(state: Pick<CentralState, 'mode' | 'lastSteps' | 'lost'>, step: number): boolean {
  return findHolding(state, step).length === 0
}

/** The ranks that keep others from beginning `step` in ssp mode: those more than k steps behind. */
export function findHolding(
  state: Pick<CentralState, 'mode' | 'lastSteps' | 'lost'>,
  step: number,
): number[] {
  const { mode, lastSteps } = state
  if (mode.kind !== 'ssp') return []
  return findCounting(state).filter((rank) => step - lastSteps[rank]! - 1 > mode.bound)
}

/** Ranks that the others wait for: all but those given up on. */
function findCounting({ lastSteps, lost }: Pick<CentralState, 'lastSteps' | 'lost'>): number[] {
  return lastSteps.map((_, rank) => rank).filter((rank) => !lost.has(rank))
}

function refuse(reason: Extract<PushDecision, { kind: 'refuse' }>['reason'], message: string): PushDecision {
  return { kind: 'refuse', reason, message }
}
