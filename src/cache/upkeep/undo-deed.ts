import { DscError, isDscError } from '../../failure/dsc-error.js'
import type { Copy, CopyLock } from '../../model/copy.js'
import type { Lease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { Cache } from '../cache.js'
import { bringBack } from './bring-back.js'
import { describeDeed, type Undone } from './describe-deed.js'
import { explainGone, findLosses, type Obstacle } from './find-losses.js'
import { listPastDeeds, type PastDeed } from './past-deeds.js'

/** A user's wish to take back the deed of this id, or the last one of their own. */
export interface UndoRequest {
  readonly id?: number | undefined
  /** Name of the user. */
  readonly by: string
}

/** Users' deeds of the last day of which something can still be taken back, newest first. */
export async function listUndoable(cache: Cache): Promise<readonly PastDeed[]> {
  const deeds = await listPastDeeds(cache.record, cache.nowMs())
  const events = deeds.flatMap((deed) => deed.events)
  const losses = await findLosses(cache, events)
  return deeds.filter((deed) => deed.events.some(({ sequence }) => !losses.has(sequence)))
}

/**
 * The deed of this id, or the user's last that can be taken back; if none can, the last one, so that an undo says why.
 * Rejects with UNDO_IMPOSSIBLE without one.
 */
export async function findPastDeed(cache: Cache, { id, by }: UndoRequest): Promise<PastDeed> {
  const isAsked = (deed: PastDeed) => (id === undefined ? deed.by === by : deed.id === id)
  const undoable = id === undefined ? (await listUndoable(cache)).find(isAsked) : undefined
  const found = undoable ?? (await listPastDeeds(cache.record, cache.nowMs())).find(isAsked)
  if (found) return found
  const message =
    id === undefined
      ? `nothing to undo: ${by} evicted, unlocked and released nothing in the last day`
      : `nothing to undo has the id ${id}: it is older than a day, or taken back`
  throw new DscError('UNDO_IMPOSSIBLE', message, { hint: 'dsc undo --list' })
}

/**
 * Takes back an eviction, cleanup, unlock or release. Each part of it is taken back by itself; rejects with
 * UNDO_IMPOSSIBLE if none can be.
 */
export async function undoDeed(cache: Cache, request: UndoRequest): Promise<Undone> {
  const deed = await findPastDeed(cache, request)
  const losses = await findLosses(cache, deed.events)
  const done: RecordEvent[] = []
  const refused: (Obstacle & { readonly dataset: string })[] = []
  for (const event of deed.events) {
    const reason = `${request.by} took back the ${deed.kind} of ${new Date(deed.atMs).toISOString()}`
    const obstacle =
      losses.get(event.sequence) ??
      (await takeBack(cache, event, { deed, reason }).catch((error: unknown) => {
        // A misplaced entry must not stop the rest.
        if (!isDscError(error, 'CACHE_ROOT_INVALID')) throw error
        return { reason: error.message, hint: error.hint ?? 'dsc cleanup' }
      }))
    if (obstacle) refused.push({ dataset: event.dataset, ...obstacle })
    else done.push(event)
  }
  const [first] = refused
  if (done.length === 0 && first)
    throw new DscError('UNDO_IMPOSSIBLE', `cannot take back the ${describeDeed(deed)}: ${first.reason}`, {
      hint: first.hint,
    })
  return { deed, done, refused: refused.map(({ dataset, reason }) => ({ dataset, reason })) }
}

async function takeBack(
  cache: Cache,
  event: RecordEvent,
  { deed, reason }: { readonly deed: PastDeed; readonly reason: string },
): Promise<Obstacle | undefined> {
  if (event.kind === 'evicted') return bringBack(cache, event, { deedId: deed.id, reason })
  const obstacle = event.kind === 'unlocked' ? await lockAgain(cache, event) : await leaseAgain(cache, event)
  if (obstacle) return obstacle
  const { node, dataset, copyId, task, sequence } = event
  const said = { kind: 'undone', reason, detail: { undoes: sequence } } as const
  await cache.record.addEvent({ ...said, atMs: cache.nowMs(), node, dataset, copyId, task })
  return undefined
}

async function lockAgain(cache: Cache, event: RecordEvent): Promise<Obstacle | undefined> {
  const { dataset, node, copyId, detail } = event
  const lock = detail.lock as CopyLock
  const [copy] = await cache.record.setLock({ copyId: copyId ?? '' }, lock, cache.nowMs())
  if (copy === undefined) return explainGone(event)
  if (isSameLock(copy, lock)) return undefined
  return {
    reason: `${dataset} on ${node} is locked already, by ${copy.lock?.by}`,
    hint: `dsc why ${dataset}`,
  }
}

function isSameLock({ lock }: Copy, { by, reason, atMs }: CopyLock): boolean {
  return lock?.by === by && lock.reason === reason && lock.atMs === atMs
}

/** Grants the lease that was released: for the same holder, until the same time. */
async function leaseAgain(cache: Cache, event: RecordEvent): Promise<Obstacle | undefined> {
  const lease = event.detail.lease as Lease
  const { copyId, task, holder, expiresAtMs } = lease
  const purpose = lease.purpose === 'transfer' ? 'transfer' : 'use'
  const request = { copyId, purpose, lease: { task, holder, expiresAtMs } } as const
  return (await cache.record.leaseCopy(request, cache.nowMs())) ? undefined : explainGone(event)
}
