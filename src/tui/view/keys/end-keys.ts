import type { Action, ScreenState } from '../screen-state.js'
import { note, refuse } from './change-screen.js'
import type { KeyOutcome, KeyTarget } from './key-press.js'

/** `x`: after confirmation, ends the lease under the cursor, or the staging of the copy, if possible. */
export function endShown(state: ScreenState, target: KeyTarget): KeyOutcome {
  const { lease, copy } = target
  if (lease?.purpose === 'use') {
    const { leaseId, dataset, task, node } = lease
    const question = `Release ${dataset} on ${node} from ${task}? Without leases it may be evicted.`
    const action = { kind: 'release', leaseId, dataset, task } as const
    return askFirst(state, { question, action, refusal: 'not released' })
  }
  if (lease?.purpose === 'transfer')
    return refuse(state, 'a lease for sending to another node ends by itself when the copy is there')
  if (!copy) return { state: note(state, 'x ends a lease or a staging: there is none here') }
  if (copy.state !== 'staging' && copy.state !== 'reserved')
    return { state: note(state, `${copy.dataset} is not being staged; x on a lease releases it`) }
  const obstacle = target.whyNotCancel(copy.copyId)
  if (obstacle !== undefined) return refuse(state, obstacle)
  const question = `Stop staging ${copy.dataset} on ${copy.node}? What is there is kept for the next time.`
  const action = { kind: 'cancel', copyId: copy.copyId, dataset: copy.dataset } as const
  return askFirst(state, { question, action, refusal: 'not stopped' })
}

/** Asks for confirmation. */
export function askFirst(
  state: ScreenState,
  asked: { readonly question: string; readonly action: Action; readonly refusal: string },
): KeyOutcome {
  return { state: { ...state, mode: { kind: 'confirm', ...asked } } }
}
