import { formatCount } from '../../../model/format-count.js'
import type { UpdateMode } from './update-mode.js'

/** Names one push for good: the same three numbers are the same gradient, however often they arrive. */
export interface PushKey {
  readonly rank: number
  /** Life of the server: grows by one at every restart. */
  readonly epoch: number
  /** Step of this rank, from 0. */
  readonly step: number
  /** Version of the parameters the gradient was computed with. */
  readonly baseVersion: number
}

/** What the central node knows when a push arrives. */
export interface CentralState {
  readonly mode: UpdateMode
  readonly workers: number
  readonly epoch: number
  readonly version: number
  /** Last step applied per rank; −1 = none. */
  readonly lastSteps: readonly number[]
  /** Ranks whose gradient of the present sync step has arrived. */
  readonly arrived: ReadonlySet<number>
}

/** What to do with a push. */
export type PushDecision =
  | { readonly kind: 'apply' }
  | { readonly kind: 'collect' }
  | { readonly kind: 'duplicate' }
  | {
      readonly kind: 'refuse'
      readonly reason: 'rank' | 'epoch' | 'stale' | 'ahead'
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
 */
export function decidePush(state: CentralState, push: PushKey): PushDecision {
  const { mode, workers, epoch, version, lastSteps } = state
  if (push.rank >= workers || push.rank < 0)
    return refuse('rank', `rank ${push.rank} of a job of ${formatCount(workers, 'worker')}`)
  if (push.epoch !== epoch)
    return refuse('epoch', `rank ${push.rank} pushes for epoch ${push.epoch}, the server is in ${epoch}`)
  if (push.step <= lastSteps[push.rank]!) return { kind: 'duplicate' }
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
    const slowest = Math.min(...lastSteps)
    if (push.step - slowest - 1 > mode.bound)
      return refuse(
        'ahead',
        `step ${push.step} is more than ${mode.bound} beyond the slowest rank, at ${slowest}`,
      )
  }
  return { kind: 'apply' }
}

/** Whether `rank` may begin `step`: in ssp mode it waits while the slowest rank is more than k steps behind. */
export function mayBegin(state: Pick<CentralState, 'mode' | 'lastSteps'>, step: number): boolean {
  return state.mode.kind !== 'ssp' || step - Math.min(...state.lastSteps) - 1 <= state.mode.bound
}

function refuse(reason: 'rank' | 'epoch' | 'stale' | 'ahead', message: string): PushDecision {
  return { kind: 'refuse', reason, message }
}
