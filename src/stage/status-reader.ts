import { setTimeout as sleep } from 'node:timers/promises'
import type { CopyUse } from '../model/copy.js'
import type { PlacedLease } from '../model/lease.js'
import type { NodeEntry } from '../model/node.js'
import type { RecordEvent } from '../model/record-event.js'
import type { RecordStore } from '../records/record-store.js'
import type { ChangeWait } from '../records/sql-database.js'
import { STATUS_EVENTS, type StatusSnapshot } from './plan/compose-status.js'
import { updateStatus } from './plan/update-status.js'
import { readNodes, readStatus, type StatusFilter } from './status-snapshot.js'

/** Reads the record again and again, each time only what may have changed. */
export interface StatusReader {
  /** The record as it is now. Rejects with what the record rejects with; the next call reads everything again. */
  read(): Promise<StatusSnapshot>
  /** Time until everything will be read again, ms; undefined when the last reading left nothing out. */
  completeInMs(): number | undefined
  /** Waits for a change of the record as it says itself; never rejects. */
  waitForChange(wait: Omit<ChangeWait, 'about'>): Promise<void>
}

/**
 * Share of the time that reading everything may take. At 1,000 copies that is every time; at 100,000 a full
 * read takes most of a second, so in between only transfers, nodes and copies that new events name are read.
 */
const FULL_READ_SHARE = 0.05
/** Above this many changed copies, one full read is cheaper than one query each. */
const MAX_CHANGED_COPIES = 50

/** Where the record comes from: `discard` is called when it failed, so that it is opened anew. */
export interface RecordSupply {
  readonly current: () => Promise<RecordStore>
  readonly discard: () => Promise<void>
}

/** Closes nothing but what failed. `nowMs` is the wall clock, `elapsedMs` a steady one. */
export function createStatusReader(
  supply: RecordSupply,
  filter: StatusFilter,
  clock: { readonly nowMs: () => number; readonly elapsedMs: () => number },
  measureOwnNode?: () => Promise<NodeEntry>,
): StatusReader {
  let last: StatusSnapshot | undefined
  let nextFullReadMs = 0
  let isComplete = false

  const readAll = async (record: RecordStore) => {
    const startedMs = clock.elapsedMs()
    const snapshot = await readStatus(record, filter, clock.nowMs(), await measureOwnNode?.())
    const tookMs = clock.elapsedMs() - startedMs
    nextFullReadMs = clock.elapsedMs() + tookMs / FULL_READ_SHARE
    return snapshot
  }

  const readChanges = async (
    record: RecordStore,
    before: StatusSnapshot,
  ): Promise<StatusSnapshot | undefined> => {
    const nowMs = clock.nowMs()
    const events = await record.listEvents({ ...filter, limit: STATUS_EVENTS })
    const changed = findChangedCopies(before, events)
    if (changed === undefined || changed.size > MAX_CHANGED_COPIES) return undefined
    const moving = await record.listCopies({ ...filter, states: ['reserved', 'staging', 'evicting'] }, nowMs)
    for (const copy of before.copies) if (copy.state !== 'ready') changed.add(copy.copyId)
    const fresh = new Map<string, CopyUse>(moving.map((copy) => [copy.copyId, copy]))
    const leases: PlacedLease[] = []
    for (const copyId of new Set([...changed, ...fresh.keys()])) {
      if (!fresh.has(copyId)) {
        for (const copy of await record.listCopies({ copyId }, nowMs)) fresh.set(copyId, copy)
      }
      leases.push(...(await record.listLeases({ copyId })))
      changed.add(copyId)
    }
    return updateStatus(before, {
      takenAtMs: nowMs,
      nodes: await readNodes(record, filter, await measureOwnNode?.()),
      copyIds: changed,
      copies: fresh,
      leases,
      transferLeases: await record.listLeases({ purpose: 'transfer' }),
      events,
    })
  }

  return {
    async read() {
      const before = last
      last = undefined
      // The usage of a node and the layout of stripes need copies that a filter leaves out.
      const isFiltered = filter.dataset !== undefined || filter.node !== undefined
      const isFullRead = before === undefined || isFiltered || clock.elapsedMs() >= nextFullReadMs
      const record = await supply.current()
      try {
        const changed = isFullRead ? undefined : await readChanges(record, before)
        isComplete = changed === undefined
        last = changed ?? (await readAll(record))
        return last
      } catch (error) {
        await supply.discard()
        throw error
      }
    },
    completeInMs: () => (isComplete ? undefined : Math.max(0, nextFullReadMs - clock.elapsedMs())),
    async waitForChange(wait) {
      const record = await supply.current().catch(() => undefined)
      if (record) return record.waitForChange(wait)
      await sleep(wait.pollMs, undefined, wait.signal ? { signal: wait.signal } : {}).catch(() => {})
    },
  }
}

/** Copies that events since `before` name; undefined when events may be missing in between. */
function findChangedCopies(before: StatusSnapshot, events: readonly RecordEvent[]): Set<string> | undefined {
  const since = before.events[0]?.sequence ?? -1
  const recent = events.filter((event) => event.sequence > since)
  if (recent.length === events.length && events.length >= STATUS_EVENTS) return undefined
  return new Set(recent.flatMap((event) => (event.copyId === null ? [] : [event.copyId])))
}
