import { DscError, isDscError } from '../../failure/dsc-error.js'
import { createFailureId } from '../../failure/failure-id.js'
import type { EvictionPlan } from '../../policy/plan-eviction.js'
import type { Cache } from '../cache.js'
import { CopyInUse, type EvictionSelection, planEvictionOf } from './evict-copies.js'

/** What the history names where so many bytes were to be freed, whichever datasets they are of. */
const ANY_DATASET = '*'

/**
 * As `planEvictionOf`, for who is about to evict: the history keeps what is refused, and `dsc why` knows it by the id of
 * the failure.
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

/** The failure as the history knows it; as it was where the record cannot be written: why it was refused is of more use. */
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
      detail: { id, code, ...(hint !== undefined && { hint }) },
    })
  } catch (failure) {
    if (isDscError(failure)) return error
    throw failure
  }
  return new DscError(code, message, { hint, cause: error, id })
}
