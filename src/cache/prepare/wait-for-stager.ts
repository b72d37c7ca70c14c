import { DscError } from '../../failure/dsc-error.js'
import { FAILURES, type FailureCode } from '../../failure/failure-table.js'
import { formatHolder, type Lease } from '../../model/lease.js'
import { LOOK_MS } from '../../platform/poll.js'
import { checkProcess } from '../../platform/processes.js'
import type { Joined } from '../../records/contract/record-requests.js'
import type { Cache } from '../cache.js'
import { interrupted } from './interrupted.js'

/** Progress of the stager that a task waits for. */
export interface WaitProgress {
  readonly step: 'waiting'
  readonly stager: string
  readonly writtenBytes: number
  readonly totalBytes: number
}

/** Interval between looks at the record, in ms: short at first, because many stagings are short. */
const FIRST_WAIT_MS = 20

type Waiting = Extract<Joined, { outcome: 'wait' }>

/**
 * Waits until the staging has ended in any way, or its stager has left it. Rejects with the stager's own failure, so
 * that twenty callers do not fail one after the other.
 */
export async function waitForStager(
  cache: Cache,
  waiting: Waiting,
  options: { readonly signal: AbortSignal; readonly onProgress?: (progress: WaitProgress) => void },
): Promise<'ended' | 'left'> {
  const { copyId } = waiting.copy
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LOOK_MS.node, waitMs * 1.5)) {
    const [copy] = await cache.record.listCopies({ copyId }, cache.nowMs())
    const failure = await findStagersFailure(cache, copyId, waiting.stageLease)
    if (failure) {
      await cache.record.releaseUses({ leaseId: waiting.leaseId }, cache.nowMs())
      throw failure
    }
    if (!copy || copy.state === 'ready') return 'ended'
    if (copy.state === 'evicting' || !copy.isBeingStaged) return 'left'
    if (isProvenDead(waiting.stageLease, cache.nowMs())) {
      const reason = `its stager, ${formatHolder(waiting.stageLease)}, has ended`
      await cache.record.expireLeases([{ leaseId: waiting.stageLease.leaseId, reason }], cache.nowMs())
      return 'left'
    }
    options.onProgress?.({
      step: 'waiting',
      stager: formatHolder(waiting.stageLease),
      writtenBytes: copy.writtenBytes,
      totalBytes: copy.contentBytes,
    })
    await cache.record.waitForChange({
      pollMs: waitMs,
      atMostMs: LOOK_MS.database,
      about: waiting.copy,
      signal: options.signal,
    })
    if (options.signal.aborted) {
      await cache.record.releaseUses({ leaseId: waiting.leaseId }, cache.nowMs())
      throw interrupted(options.signal)
    }
  }
}

async function findStagersFailure(
  cache: Cache,
  copyId: string,
  stageLease: Lease,
): Promise<DscError | undefined> {
  const kinds = ['staging-failed', 'refused'] as const
  const [event] = await cache.record.listEvents({ copyId, kinds, limit: 1 })
  if (event?.detail.stageLeaseId !== stageLease.leaseId) return undefined
  const { code, hint, id } = event.detail
  if (typeof code !== 'string' || !isFailureCode(code)) return undefined
  return new DscError(code, event.reason, {
    hint: typeof hint === 'string' ? hint : undefined,
    id: typeof id === 'string' ? id : undefined,
  })
}

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(FAILURES, code)
}

function isProvenDead({ holder, renewedAtMs }: Lease, nowMs: number): boolean {
  return holder.kind === 'process' && checkProcess(holder, nowMs - renewedAtMs) === 'dead'
}
