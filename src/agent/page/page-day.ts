import type { Cache } from '../../cache/cache.js'
import type { ClusterStatus } from '../../cache/status/cluster-status.js'
import { readEventPages } from '../../cache/status/record-pages.js'
import { DAY_MS, DAY_STEPS, MAX_DAY_EVENTS, traceDay } from '../../cache/status/trace-day.js'
import { HALF_HOURS, type NodeDay, traceNodes, traceUses, USE_EVENTS } from '../../cache/status/trace-uses.js'
import { compareText } from '../../model/compare-text.js'
import type { RecordEvent } from '../../model/record-event.js'

/** How long the events of a day stay fresh, in ms: a step of the day is five minutes long. */
const KEPT_MS = 60_000
/** Maximum number of nodes, datasets and holders in an answer. */
const MAX_NODES = 60
const MAX_DATASETS = 8
const MAX_HOLDERS = 40

/** The day before now for the curves, the map of nodes and the lists beside them. */
export class PageDay {
  readonly #cache: Pick<Cache, 'record' | 'nowMs'>
  #kept: { readonly atMs: number; readonly events: Promise<readonly RecordEvent[]> } | undefined

  constructor(cache: Pick<Cache, 'record' | 'nowMs'>) {
    this.#cache = cache
  }

  async describe(status: ClusterStatus) {
    const events = await this.#readEvents()
    const { takenAtMs: nowMs, transfers, waits } = status
    const copies = status.nodes.flatMap(({ read }) => read?.dayCopies ?? [])
    const day = traceDay(events, { copies, transfers }, nowMs)
    const uses = traceUses(events, waits, nowMs)
    const names = status.nodes.map(({ entry }) => entry.node)
    const nodes = traceNodes(names, events, { transfers, waits, nowMs })
    return {
      until: new Date(nowMs).toISOString(),
      stepMs: DAY_MS / DAY_STEPS,
      spanMs: day.spanMs,
      spaceBytes: day.spaceBytes,
      receivedBytesPerSecond: day.receivedBytesPerSecond.map(Math.round),
      peerBytesPerSecond: day.peerBytesPerSecond.map(Math.round),
      uses: uses.uses,
      hits: uses.hits,
      waiting: uses.waiting.map((jobs) => Math.round(100 * jobs) / 100),
      columns: HALF_HOURS,
      totalNodes: nodes.length,
      nodes: chooseNodes(nodes).map(({ receivedBytes, waitedMs, ...rest }) => {
        return { ...rest, receivedBytes: receivedBytes.map(Math.round), waitedMs: waitedMs.map(Math.round) }
      }),
      datasets: uses.datasets
        .slice(0, MAX_DATASETS)
        .map((dataset) => ({ ...dataset, nodes: countNodes(status, dataset.dataset) })),
      holders: sumHolders(status),
    }
  }

  #readEvents(): Promise<readonly RecordEvent[]> {
    const { nowMs } = this.#cache
    if (this.#kept && nowMs() - this.#kept.atMs < KEPT_MS) return this.#kept.events
    const events = this.#readDay()
    this.#kept = { atMs: nowMs(), events }
    events.catch(() => {
      this.#kept = undefined
    })
    return events
  }

  async #readDay(): Promise<readonly RecordEvent[]> {
    const { record, nowMs } = this.#cache
    const wanted = { kinds: USE_EVENTS, sinceMs: nowMs() - DAY_MS, limit: MAX_DAY_EVENTS }
    const events: RecordEvent[] = []
    for await (const page of readEventPages(record, wanted))
      events.push(...page.map((event) => ({ ...event, reason: '', detail: keepFigures(event.detail) })))
    return events
  }
}

/** Keeps the part of a detail that the figures read: 20,000 events with paths and versions would take 20 MB. */
function keepFigures({ fetchedBytes, origins, chargedBytes, isHit, waitedMs }: RecordEvent['detail']) {
  return { fetchedBytes, origins, chargedBytes, isHit, waitedMs }
}

/** All nodes, or those with the most trouble, waits and bytes; in the order of their names. */
function chooseNodes(nodes: readonly NodeDay[]): readonly NodeDay[] {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const weigh = ({ refusals, damages, waitedMs, receivedBytes }: NodeDay) =>
    1e18 * (sum(refusals) + sum(damages)) + 1e6 * sum(waitedMs) + sum(receivedBytes) / 1e9
  const chosen = nodes.length > MAX_NODES ? nodes.toSorted((a, b) => weigh(b) - weigh(a)) : nodes
  return chosen.slice(0, MAX_NODES).toSorted((a, b) => compareText(a.node, b.node))
}

function countNodes(status: ClusterStatus, dataset: string): number {
  const number = status.datasets.indexOf(dataset)
  return status.nodes.filter(({ read }) => read?.cells.find(number)?.state === 'ready').length
}

/** Bytes by the party that used a copy last, and how many of them its jobs use now; largest first. */
function sumHolders(status: ClusterStatus) {
  const holders = new Map<string | null, { bytes: number; usedBytes: number }>()
  for (const { parties, chargedBytes, isUsed } of status.nodes.flatMap(({ read }) => read?.sums ?? [])) {
    for (const party of parties && parties.length > 0 ? parties : [null]) {
      const sum = holders.get(party) ?? { bytes: 0, usedBytes: 0 }
      holders.set(party, sum)
      sum.bytes += chargedBytes
      if (isUsed) sum.usedBytes += chargedBytes
    }
  }
  return [...holders]
    .map(([party, sum]) => ({ party, ...sum }))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MAX_HOLDERS)
}
