import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { formatByteSize } from '../../model/byte-size.js'

/** Something that somebody must act on. */
export interface Trouble {
  readonly kind: 'refused' | 'damaged' | 'disk short'
  /** One sentence. */
  readonly text: string
  /** Since when, Unix epoch in ms, where that is known. */
  readonly sinceMs?: number
  /** Helps, or says more. */
  readonly command: string
}

type Seen = Pick<StatusSnapshot, 'waits' | 'nodes' | 'events' | 'copies'>

/**
 * Lists the troubles that need a person, the latest of each kind first: jobs that were refused room, copies found damaged and not
 * repaired since, disks that others filled beyond `minFree`. A cache that is full is no trouble: idle copies make room.
 */
export function listTroubles(seen: Seen): readonly Trouble[] {
  return [...listRefused(seen), ...listDamaged(seen), ...listShort(seen)]
}

/** The first line of the screen: the latest trouble of the first kind, and how many there are of it. */
export function describeTroubles(troubles: readonly Trouble[]): string | undefined {
  const [first] = troubles
  if (!first) return undefined
  const same = troubles.filter(({ kind }) => kind === first.kind).length
  return `${same} ${first.kind}: ${first.text}`
}

function listRefused({ waits }: Seen): readonly Trouble[] {
  const refused = waits.filter(({ kind }) => kind === 'room').toReversed()
  return refused.map(({ task, dataset, node, reason, sinceMs }) => ({
    kind: 'refused',
    text: `${task} wants ${dataset} on ${node} (${reason.split('\n')[0]!.trim()})`,
    sinceMs,
    command: `dsc why ${dataset} --node ${node}`,
  }))
}

/** Events are newest first, so the first word on a copy counts. */
function listDamaged({ events, copies }: Seen): readonly Trouble[] {
  const present = new Set(copies.map(({ copyId }) => copyId))
  const told = new Set<string>()
  return events.flatMap(({ kind, copyId, dataset, node, reason, atMs }): Trouble[] => {
    if ((kind !== 'damaged' && kind !== 'repaired') || copyId === null || told.has(copyId)) return []
    told.add(copyId)
    if (kind === 'repaired' || !present.has(copyId)) return []
    const text = `${dataset} on ${node} (${reason.split('\n')[0]!.trim()})`
    return [{ kind: 'damaged', text, sinceMs: atMs, command: `dsc verify ${dataset} --repair` }]
  })
}

function listShort({ nodes }: Seen): readonly Trouble[] {
  return nodes.flatMap(({ node, usage: { free } }): Trouble[] => {
    const { freeBytes, minFreeBytes } = free
    if (minFreeBytes === null || freeBytes >= minFreeBytes) return []
    const text = `${node} has ${formatByteSize(freeBytes)} free of minFree ${formatByteSize(minFreeBytes)}`
    return [{ kind: 'disk short', text, command: `dsc status --plain --node ${node}` }]
  })
}
