import { hostname } from 'node:os'
import { DscError } from '../failure/dsc-error.js'
import { resolveDataset } from '../library/resolve-dataset.js'
import type { CopyUse } from '../model/copy.js'
import { identifyProcess } from '../platform/processes.js'
import { findUserName } from '../platform/this-user.js'
import type { RecordStore } from '../records/record-store.js'
import type { Cache } from '../stage/cache.js'
import type { StatusActions } from '../tui/status-actions.js'
import type { CliContext } from './context.js'

/**
 * What the keys of `dsc status` do, by the same use cases as the commands. `openRecord` gives the record that
 * the screen reads; `signal` aborts what is under way when the screen closes.
 */
export function createStatusActions(
  context: CliContext,
  openRecord: () => Promise<RecordStore>,
  signal: AbortSignal,
): StatusActions & { readonly settle: () => Promise<void> } {
  const underWay = new Set<Promise<void>>()
  const track = (work: Promise<void>): Promise<void> => {
    underWay.add(work)
    const forget = () => underWay.delete(work)
    work.then(forget, forget)
    return work
  }
  const user = findUserName(context.environment)
  const openCache = async (): Promise<Cache> => ({
    ...(await context.openCache()),
    record: await openRecord(),
  })

  const setLock = async (copyId: string, reason: string | null) => {
    const nowMs = context.nowMs()
    const record = await openRecord()
    const lock = reason === null ? null : { by: user, reason, atMs: nowMs }
    const changed = await record.setLock({ copyId }, lock, nowMs)
    if (changed.length === 0) throw new DscError('COPY_NOT_FOUND', 'the copy is gone')
  }

  return {
    lock: (copyId, reason) => track(setLock(copyId, reason)),
    unlock: (copyId) => track(setLock(copyId, null)),
    evict: (copyId) => track(evict(copyId)),
    prepare: (dataset) => track(prepare(dataset)),
    /** Resolves when nothing is under way any more, however it ended. */
    settle: async () => void (await Promise.allSettled(underWay)),
  }

  async function evict(copyId: string): Promise<void> {
    const copy = await findCopy(await openRecord(), copyId, context.nowMs())
    const { node } = await context.config()
    if (copy.node !== node) {
      throw new DscError('USAGE', `${copy.dataset} is on ${copy.node}, this is ${node}`, {
        hint: `dsc evict ${copy.dataset} on ${copy.node}`,
      })
    }
    const cache = await openCache()
    const { evictCopies, planEvictionOf } = await import('../stage/evict-copies.js')
    const selection = { kind: 'copy', copyId } as const
    await planEvictionOf(cache, selection)
    const done = await evictCopies(cache, selection, null)
    if (done.victims.length === 0) {
      throw new DscError('COPY_IN_USE', `${copy.dataset} was leased or locked meanwhile`)
    }
  }

  async function prepare(name: string): Promise<void> {
    const dataset = await resolveDataset(context, name)
    const cache = await openCache()
    const { prepareDataset } = await import('../stage/prepare-dataset.js')
    // Nobody uses it yet: the lease is this screen's, and ends when the copy is there.
    const lease = {
      task: `${user}@${hostname()}:status`,
      holder: identifyProcess(process.pid) ?? { kind: 'ttl' as const },
      expiresAtMs: context.nowMs() + 24 * 3_600_000,
    }
    const prepared = await prepareDataset(
      cache,
      { dataset, lease, isRefresh: false, mayWait: true },
      { signal },
    )
    await cache.record.releaseUses({ leaseId: prepared.leaseId }, context.nowMs())
  }
}

async function findCopy(record: RecordStore, copyId: string, nowMs: number): Promise<CopyUse> {
  const [copy] = await record.listCopies({ copyId }, nowMs)
  if (!copy) throw new DscError('COPY_NOT_FOUND', 'the copy is gone')
  return copy
}
