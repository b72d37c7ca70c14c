import type { Cache } from '../../cache/cache.js'
import type { ClusterStatus } from '../../cache/status/cluster-status.js'
import { DAY_EVENTS, DAY_MS, DAY_STEPS, MAX_DAY_EVENTS, traceDay } from '../../cache/status/trace-day.js'
import { STALL_EVENTS, traceStalls } from '../../cache/status/trace-stalls.js'
import { HALF_HOURS, type NodeDay, traceNodes, traceUses, USE_EVENTS } from '../../cache/status/trace-uses.js'
import { compareText } from '../../model/compare-text.js'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import { FreshAnswers } from '../../platform/fresh-answers.js'

/** How long the events of a day stay fresh, in ms: a step of the day is five minutes long. */
const KEPT_MS = 60_000
/** Maximum number of nodes, datasets and holders in an answer. */
const MAX_NODES = 60
const MAX_DATASETS = 8
const MAX_HOLDERS = 40

/** The events of a day: stagings and evictions, and uses, of which a busy day has many times more. */
interface DayEvents {
  readonly stagings: readonly RecordEvent[]
  readonly uses: readonly RecordEvent[]
  /** How trainers spent their time. */
  readonly stalls: readonly RecordEvent[]
}

/** The curves, the map of nodes and the lists of a day. */
type PageDayAnswer = ReturnType<typeof addUp>

/** The day before now for the curves, the map of nodes and the lists beside them. */
export class PageDay {
  readonly #cache: Pick<Cache, 'record' | 'nowMs'>
  readonly #events = new FreshAnswers<DayEvents>({ freshMs: KEPT_MS, most: 1 })
  /** One answer to all viewers of a status: a busy day takes 60 ms to add up. */
  readonly #answers = new WeakMap<ClusterStatus, Promise<PageDayAnswer>>()

  constructor(cache: Pick<Cache, 'record' | 'nowMs'>) {
    this.#cache = cache
  }

  describe(status: ClusterStatus): Promise<PageDayAnswer> {
    const known = this.#answers.get(status)
    if (known) return known
    const answer = this.#events.get('day', () => this.#readDay()).then((events) => addUp(events, status))
    this.#answers.set(status, answer)
    answer.catch(() => this.#answers.delete(status))
    return answer
  }

  async #readDay(): Promise<DayEvents> {
    const { record, nowMs } = this.#cache
    const sinceMs = nowMs() - DAY_MS
    // At once, not in pages: each page but the first would have to be looked for among all older events, too.
    const read = async (kinds: readonly RecordEventKind[]) => {
      const events = await record.listEvents({ kinds, sinceMs, limit: MAX_DAY_EVENTS })
      return events.map((event) => ({ ...event, reason: '', detail: keepFigures(event.detail) }))
    }
    return {
      stagings: await read(DAY_EVENTS),
      uses: await read(USE_EVENTS),
      stalls: await read(STALL_EVENTS),
    }
  }
}

function addUp(events: DayEvents, status: ClusterStatus) {
  const { takenAtMs: nowMs, transfers, waits } = status
  const copies = status.nodes.flatMap(({ read }) => read?.dayCopies ?? [])
  const day = traceDay(events.stagings, { copies, transfers }, nowMs)
  const uses = traceUses(events.uses, waits, nowMs)
  const names = status.nodes.map(({ entry }) => entry.node)
  const nodes = traceNodes(names, [...events.stagings, ...events.uses], { transfers, waits, nowMs })
  return {
    until: new Date(nowMs).toISOString(),
    stepMs: DAY_MS / DAY_STEPS,
    spanMs: day.spanMs,
    spaceBytes: day.spaceBytes,
    receivedBytesPerSecond: day.receivedBytesPerSecond.map(Math.round),
    peerBytesPerSecond: day.peerBytesPerSecond.map(Math.round),
    usesSpanMs: uses.spanMs,
    uses: uses.uses,
    hits: uses.hits,
    waiting: uses.waiting.map((jobs) => Math.round(100 * jobs) / 100),
    stalls: traceStalls(events.stalls, nowMs),
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

/** Keeps the part of a detail that the figures read: 20,000 events with paths and versions would take 20 MB. */
function keepFigures(detail: RecordEvent['detail']) {
  const { fetchedBytes, origins, chargedBytes, isHit, waitedMs, readyMs, sinceMs, gpus, gpuMs, waits } =
    detail
  return { fetchedBytes, origins, chargedBytes, isHit, waitedMs, readyMs, sinceMs, gpus, gpuMs, waits }
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
