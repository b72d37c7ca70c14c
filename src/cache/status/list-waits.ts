import { formatByteSize } from '../../model/byte-size.js'
import type { RecordEvent } from '../../model/record-event.js'

/** A task that lacks its dataset, and why. */
export interface WaitStatus {
  /** `staging`: a download is running or abandoned. `room`: the policy refused it, and no later attempt succeeded. */
  readonly kind: 'staging' | 'room'
  readonly task: string
  readonly dataset: string
  readonly node: string
  /** When it first asked, Unix epoch in ms. */
  readonly sinceMs: number
  /** For people; one line for each copy that holds the room. */
  readonly reason: string
}

/** A staging that tasks may wait for. */
export interface WaitedStaging {
  readonly dataset: string
  readonly node: string
  readonly state: string
  /** Null: abandoned. */
  readonly stager: string | null
  readonly writtenBytes: number
  readonly contentBytes: number
  readonly servedBy: readonly string[]
  /** Tasks that asked for it, and whether they read what is here already. */
  readonly waiters: readonly {
    readonly task: string
    readonly sinceMs: number
    readonly isReading?: boolean
  }[]
}

/** How long a refusal counts as a wait, in ms; a task that asks again is refused again. */
const REFUSED_FOR_MS = 15 * 60_000

/** Present waits of tasks, longest first: for stagings, and for room that the policy did not have. */
export function listWaits(status: {
  readonly takenAtMs: number
  readonly transfers: readonly WaitedStaging[]
  /** Newest first. */
  readonly events: readonly RecordEvent[]
}): readonly WaitStatus[] {
  const waits = [...status.transfers.flatMap(waitsForStaging), ...waitsForRoom(status)]
  return waits.toSorted((a, b) => a.sinceMs - b.sinceMs || (a.task < b.task ? -1 : 1))
}

function waitsForStaging(transfer: WaitedStaging): readonly WaitStatus[] {
  const { dataset, node } = transfer
  const waiting = transfer.waiters.filter(({ isReading }) => !isReading)
  return waiting.map(({ task, sinceMs }) => ({
    kind: 'staging',
    task,
    dataset,
    node,
    sinceMs,
    reason: describeStaging(transfer, task),
  }))
}

function describeStaging(transfer: WaitedStaging, task: string): string {
  const { state, stager, node, writtenBytes, contentBytes, servedBy } = transfer
  if (stager === null) return 'its download was interrupted: the next dsc prepare continues it'
  const whose = stager === task ? '' : ` for ${stager}`
  if (state === 'reserved') return `${node} lists its source${whose}`
  const from = servedBy.length === 0 ? '' : ` from ${servedBy.join(', ')}`
  return `${node} stages it${whose}${from}: ${formatByteSize(writtenBytes)} of ${formatByteSize(contentBytes)}`
}

/** The last refusals of datasets that nobody has received since; `events` are newest first. */
function waitsForRoom({
  takenAtMs,
  transfers,
  events,
}: Parameters<typeof listWaits>[0]): readonly WaitStatus[] {
  const keyOf = (of: { task: string | null; dataset: string; node: string }) =>
    JSON.stringify([of.task, of.dataset, of.node])
  const settled = new Set(
    transfers.flatMap(({ dataset, node, waiters }) =>
      waiters.map(({ task }) => keyOf({ task, dataset, node })),
    ),
  )
  const refused = new Map<string, { readonly last: RecordEvent; sinceMs: number }>()
  const admitted = new Set<string>() // another request found room for it since
  for (const event of events) {
    const place = JSON.stringify([event.dataset, event.node])
    if (event.kind === 'staged' || event.kind === 'leased') admitted.add(place)
    if (event.task === null || event.kind !== 'refused') continue
    const key = keyOf(event)
    if (settled.has(key) || admitted.has(place)) continue
    const known = refused.get(key)
    if (known) known.sinceMs = event.atMs
    else if (takenAtMs - event.atMs <= REFUSED_FOR_MS) refused.set(key, { last: event, sinceMs: event.atMs })
  }
  return [...refused.values()].map(({ last, sinceMs }) => ({
    kind: 'room',
    task: last.task!,
    dataset: last.dataset,
    node: last.node,
    sinceMs,
    reason: last.reason,
  }))
}
