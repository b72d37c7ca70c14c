import { DscError, isDscError } from '../../failure/dsc-error.js'
import { createFailureId } from '../../failure/failure-id.js'
import type { EvictionPlan } from '../../policy/plan-eviction.js'
import type { Cache } from '../cache.js'
import { CopyInUse, type EvictionSelection, planEvictionOf } from './evict-copies.js'

/** Stands for a dataset in the history when the request was to free bytes, of any dataset. */
const ANY_DATASET = '*'

/**
 * Like `planEvictionOf`, for a caller about to evict: records a refusal in the history, where `dsc why` finds it by the
 * failure's id.
 */
export async function planOwnEviction(
  cache: Cache,
  selection: EvictionSelection,
  task: string | null,
): Promise<EvictionPlan> {
  try {
    return await planEvictionOf(cache, selection)
  } catch (error) {
    if (!isDscError(error, 'COPY_IN_USE', 'QUOTA_EXCEEDED')) throw error
    const dataset = error instanceof CopyInUse ? error.dataset : ANY_DATASET
    throw await keepRefusal(cache, { error, dataset, task })
  }
}

/**
 * The failure with its id in the history; the plain failure if the record cannot be written: its reason matters more.
 */
async function keepRefusal(
  { record, node, nowMs }: Cache,
  {
    error,
    dataset,
    task,
  }: { readonly error: DscError; readonly dataset: string; readonly task: string | null },
): Promise<DscError> {
  const { code, message, hint } = error
  const id = createFailureId()
  try {
    await record.addEvent({
      atMs: nowMs(),
      kind: 'eviction-refused',
      node,
      dataset,
      copyId: null,
      task,
      reason: message,
      detail: { id, code, hint },
    })
  } catch (failure) {
    if (isDscError(failure)) return error
    throw failure
  }
  return new DscError(code, message, { hint, cause: error, id })
}
