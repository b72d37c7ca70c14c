import type { RecordEvent } from '../../model/record-event.js'
import { KEPT_MS } from '../../policy/plan-drops.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { CLEAN_UP_TASK } from './clean-up.js'

/** Events of one page of the history. The next page, rarely needed, would be searched back to the first event of all. */
const PAGE_EVENTS = 20_000

/** Something that a user did, all at once, and can take back. */
export interface PastDeed {
  /** Sequence number of its last event. */
  readonly id: number
  readonly kind: 'evict' | 'cleanup' | 'unlock' | 'release'
  /** Name of the user. */
  readonly by: string
  readonly atMs: number
  /** Each copy evicted or unlocked, or each lease released, newest first. */
  readonly events: readonly RecordEvent[]
}

/** Reads the deeds of the last day that nobody took back, newest first. */
export async function listPastDeeds(
  record: Pick<RecordStore, 'listEvents'>,
  nowMs: number,
): Promise<readonly PastDeed[]> {
  const events: RecordEvent[] = []
  const kinds = ['evicted', 'unlocked', 'released', 'undone'] as const
  for (;;) {
    const before = events.at(-1)?.sequence
    const asked = { kinds, sinceMs: nowMs - KEPT_MS, limit: PAGE_EVENTS }
    const page = await record.listEvents(before === undefined ? asked : { ...asked, before })
    events.push(...page)
    if (page.length < PAGE_EVENTS) return groupDeeds(events)
  }
}

/** Groups events, newest first, into the deeds that they are of; leaves out those without a user or taken back. */
export function groupDeeds(events: readonly RecordEvent[]): readonly PastDeed[] {
  const undone = new Set(events.flatMap(({ kind, detail }) => (kind === 'undone' ? [detail.undoes] : [])))
  const deeds = new Map<string, PastDeed>()
  for (const event of events) {
    const { sequence: id, atMs, node } = event
    const { by } = event.detail
    const kind = findKind(event)
    if (kind === undefined || typeof by !== 'string' || undone.has(id)) continue
    const key = JSON.stringify([kind, by, atMs, event.kind === 'evicted' ? node : undefined])
    const deed = deeds.get(key) ?? { id, kind, by, atMs, events: [] }
    deeds.set(key, { ...deed, events: [...deed.events, event] })
  }
  return [...deeds.values()]
}

function findKind({ kind, task }: RecordEvent): PastDeed['kind'] | undefined {
  if (kind === 'evicted') return task === CLEAN_UP_TASK ? 'cleanup' : 'evict'
  if (kind === 'unlocked') return 'unlock'
  return kind === 'released' ? 'release' : undefined
}
