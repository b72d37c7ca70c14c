import { countOrigins } from '../../model/origins-noted.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { ReportAnswer } from './report-answer.js'

/** A task that waited for a dataset. */
export interface Wait {
  readonly task: string
  readonly dataset: string
  readonly node: string
  readonly waitedMs: number
  readonly atMs: number
  /** `user:alice`, `account:nlp`; empty if the job named none. */
  readonly parties: readonly string[]
}

/** Cost and savings of a dataset over the period, on all nodes asked about. */
export type DatasetTally = ReportAnswer['datasets'][number]

/** Requests that the policy refused with the same dataset, node and limits. */
export interface Refusal {
  readonly dataset: string
  readonly node: string
  /** Named as in `Limit`; empty if the history does not say. */
  readonly limits: readonly string[]
  readonly lastTask: string | null
  readonly lastAtMs: number
  readonly lastReason: string
  count: number
}

/** Number of longest waits listed one by one. */
const NAMED_WAITS = 20

/** Sums up the history event by event, newest first. It holds datasets and refusals in memory, never the events. */
export class HistoryTally {
  readonly datasets = new Map<string, DatasetTally>()
  readonly refusals = new Map<string, Refusal>()
  readonly copiesUsed = new Set<string>()
  /** Longest first. */
  waits: readonly Wait[] = []
  /** Uses by an earlier dsc, which did not note the size of the copy. */
  usesOfUnknownSize = 0
  /** Stagings, newest first: a staging is read before the eviction that made it necessary. */
  readonly #stagedLater = new Map<string, { readonly bytes: number }[]>()
  /** Sequence numbers of what users took back: it never cost a staging. */
  readonly #takenBack = new Set<unknown>()

  add(event: RecordEvent): void {
    if (event.kind === 'leased') this.#addUse(event)
    else if (event.kind === 'staged') this.#addStaging(event)
    else if (event.kind === 'undone') this.#takenBack.add(event.detail.undoes)
    else if (event.kind === 'evicted' && !this.#takenBack.has(event.sequence)) this.#addEviction(event)
    else if (event.kind === 'refused') this.#addRefusal(event)
  }

  #addUse({ detail, dataset, node, task, atMs, copyId }: RecordEvent): void {
    const { waitedMs, contentBytes, isHit, parties } = detail as Readonly<Record<string, unknown>>
    const tally = this.#of(dataset)
    tally.uses += 1
    if (copyId !== null) this.copiesUsed.add(copyId)
    if (isHit === true) tally.hits += 1
    if (typeof contentBytes === 'number') tally.readBytes += contentBytes
    else this.usesOfUnknownSize += 1
    if (typeof waitedMs !== 'number' || waitedMs === 0) return
    tally.waitedMs += waitedMs
    const shortest = this.waits.at(-1)
    if (this.waits.length >= NAMED_WAITS && shortest && shortest.waitedMs >= waitedMs) return
    const known = Array.isArray(parties) ? parties.map(String) : []
    const wait = { task: task ?? '', dataset, node, waitedMs, atMs, parties: known }
    this.waits = [...this.waits, wait].toSorted((a, b) => b.waitedMs - a.waitedMs).slice(0, NAMED_WAITS)
  }

  #addStaging({ detail, dataset, node }: RecordEvent): void {
    const { storeBytes, peerBytes } = countOrigins(detail)
    const tally = this.#of(dataset)
    tally.storeBytes += storeBytes
    tally.peerBytes += peerBytes
    const place = JSON.stringify([dataset, node])
    this.#stagedLater.set(place, [...(this.#stagedLater.get(place) ?? []), { bytes: storeBytes + peerBytes }])
  }

  #addEviction({ dataset, node }: RecordEvent): void {
    const tally = this.#of(dataset)
    tally.evictions += 1
    const place = JSON.stringify([dataset, node])
    const after = this.#stagedLater.get(place)?.pop()
    if (after === undefined) return
    tally.stagedAgain += 1
    tally.stagedAgainBytes += after.bytes
    this.#stagedLater.delete(place)
  }

  #addRefusal({ dataset, node, detail, task, atMs, reason }: RecordEvent): void {
    const facts = detail.facts as { readonly limits?: readonly string[] } | undefined
    const limits = facts?.limits ?? []
    const key = JSON.stringify([dataset, node, limits])
    const known = this.refusals.get(key)
    if (known) known.count += 1
    else {
      const last = { lastTask: task, lastAtMs: atMs, lastReason: reason.split('\n')[0]! }
      this.refusals.set(key, { dataset, node, limits, ...last, count: 1 })
    }
  }

  #of(dataset: string): DatasetTally {
    const found = this.datasets.get(dataset) ?? {
      dataset,
      uses: 0,
      hits: 0,
      waitedMs: 0,
      readBytes: 0,
      storeBytes: 0,
      peerBytes: 0,
      evictions: 0,
      stagedAgain: 0,
      stagedAgainBytes: 0,
    }
    this.datasets.set(dataset, found)
    return found
  }
}
