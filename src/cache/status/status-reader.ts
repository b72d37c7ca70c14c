import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { NodeEntry } from '../../model/node.js'
import type { RecordEvent } from '../../model/record-event.js'
import { pause } from '../../platform/poll.js'
import type { ChangeWait, RecordStore } from '../../records/contract/record-store.js'
import { STATUS_EVENTS, type StatusSnapshot } from './compose-status.js'
import { readNodes, readStatus, type StatusFilter } from './status-snapshot.js'
import { updateStatus } from './update-status.js'

/** Reads the record repeatedly. */
export interface StatusReader<Status = StatusSnapshot> {
  /** Reads the record as it is now. Rejects as the record does; the next call then reads everything again. */
  read(): Promise<Status>
  /** Time until the next full read, in ms; undefined if the last read was complete. */
  completeInMs(): number | undefined
  /** Waits until the record announces a change; never rejects. */
  waitForChange(wait: Omit<ChangeWait, 'about'>): Promise<void>
}

/**
 * Fraction of the time that full reads may take. At 1,000 copies every read can be full. At 100,000 a full read takes
 * most of a second, so reads in between cover only transfers, nodes and the copies named by new events.
 */
const FULL_READ_SHARE = 0.05
/** Above this many changed copies, one full read is cheaper than one query each. */
const MAX_CHANGED_COPIES = 50

/** Supplies the record; call `discard` after a failure, so that it is opened again. */
export interface RecordSupply {
  readonly current: () => Promise<RecordStore>
  readonly discard: () => Promise<void>
}

/**
 * Reads only what may have changed. Discards the record only after a failure. `nowMs` is the wall clock, `elapsedMs` a
 * steady one; `measureOwnNode` measures the present state of the own node.
 */
export class RecordReader implements StatusReader {
  readonly #supply: RecordSupply
  readonly #filter: StatusFilter
  readonly #clock: { readonly nowMs: () => number; readonly elapsedMs: () => number }
  readonly #measureOwnNode: (() => Promise<NodeEntry>) | undefined
  #last: StatusSnapshot | undefined
  #nextFullReadMs = 0
  #isComplete = false

  constructor(options: {
    readonly supply: RecordSupply
    readonly filter: StatusFilter
    readonly clock: { readonly nowMs: () => number; readonly elapsedMs: () => number }
    readonly measureOwnNode?: () => Promise<NodeEntry>
  }) {
    this.#supply = options.supply
    this.#filter = options.filter
    this.#clock = options.clock
    this.#measureOwnNode = options.measureOwnNode
  }

  async read(): Promise<StatusSnapshot> {
    const before = this.#last
    this.#last = undefined
    // A node's usage and the layout of stripes need copies that a filter leaves out.
    const isFiltered = this.#filter.dataset !== undefined || this.#filter.node !== undefined
    const isFullRead = before === undefined || isFiltered || this.#clock.elapsedMs() >= this.#nextFullReadMs
    const record = await this.#supply.current()
    try {
      const changed = isFullRead ? undefined : await this.#readChanges(record, before)
      this.#isComplete = changed === undefined
      this.#last = changed ?? (await this.#readAll(record))
      return this.#last
    } catch (error) {
      await this.#supply.discard()
      throw error
    }
  }

  completeInMs(): number | undefined {
    return this.#isComplete ? undefined : Math.max(0, this.#nextFullReadMs - this.#clock.elapsedMs())
  }

  async waitForChange(wait: Omit<ChangeWait, 'about'>): Promise<void> {
    const record = await this.#supply.current().catch(() => undefined)
    if (record) return record.waitForChange(wait)
    await pause(wait.pollMs, wait.signal)
  }

  async #readAll(record: RecordStore): Promise<StatusSnapshot> {
    const startedMs = this.#clock.elapsedMs()
    const ownNode = await this.#measureOwnNode?.()
    const snapshot = await readStatus(record, this.#filter, { nowMs: this.#clock.nowMs(), ownNode })
    const tookMs = this.#clock.elapsedMs() - startedMs
    this.#nextFullReadMs = this.#clock.elapsedMs() + tookMs / FULL_READ_SHARE
    return snapshot
  }

  /** Undefined if a full read is cheaper, or if the changes cannot be told. */
  async #readChanges(record: RecordStore, before: StatusSnapshot): Promise<StatusSnapshot | undefined> {
    const nowMs = this.#clock.nowMs()
    const filter = this.#filter
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
      nodes: await readNodes(record, filter, await this.#measureOwnNode?.()),
      copyIds: changed,
      copies: fresh,
      leases,
      transferLeases: await record.listLeases({ purpose: 'transfer' }),
      events,
    })
  }
}

/** Copies named by events since `before`; undefined if events in between may be missing. */
function findChangedCopies(before: StatusSnapshot, events: readonly RecordEvent[]): Set<string> | undefined {
  const since = before.events[0]?.sequence ?? -1
  const recent = events.filter((event) => event.sequence > since)
  if (recent.length === events.length && events.length >= STATUS_EVENTS) return undefined
  return new Set(recent.flatMap((event) => (event.copyId === null ? [] : [event.copyId])))
}
