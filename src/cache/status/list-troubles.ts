import { formatByteSize } from '../../model/byte-size.js'
import type { CopyUse } from '../../model/copy.js'
import type { StatusSnapshot } from './compose-status.js'

/** A condition that a person must act on. */
export interface Trouble {
  readonly kind: 'refused' | 'damaged' | 'disk short' | 'silent'
  /** The names and the reason, in one line. */
  readonly text: string
  /** Its beginning, Unix epoch in ms, where the record has it. */
  readonly sinceMs?: number
  /** A shell command that helps or explains it. */
  readonly command: string
}

/** Silence after which an agent is in trouble, in ms; agents report every 10 s. */
const SILENT_AFTER_MS = 2 * 60_000
/** Silence after which the node is taken for gone on purpose, in ms. */
const GONE_AFTER_MS = 24 * 3_600_000

type Seen = Pick<StatusSnapshot, 'takenAtMs' | 'waits' | 'nodes' | 'events'> & {
  readonly copies: readonly Pick<CopyUse, 'copyId'>[]
}

/**
 * Lists the troubles that need a person, the latest of each kind first: jobs that were refused room, copies found
 * damaged and not repaired since, disks that others filled beyond `minFree`, agents that stopped without a word. A full
 * cache is fine: dsc evicts idle copies.
 */
export function listTroubles(seen: Seen): readonly Trouble[] {
  return [...listRefused(seen), ...listDamaged(seen), ...listShort(seen), ...listSilent(seen)]
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

/** Copies that are still there and whose latest check found damage. Events are newest first. */
function listDamaged({ events, copies }: Seen): readonly Trouble[] {
  const told = new Set<string>()
  return events.flatMap(({ kind, copyId, dataset, node, reason, atMs }): Trouble[] => {
    if ((kind !== 'damaged' && kind !== 'repaired') || copyId === null || told.has(copyId)) return []
    told.add(copyId)
    if (kind === 'repaired' || !copies.some((copy) => copy.copyId === copyId)) return []
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

/** Nodes whose agent neither reports nor said that it stops. */
function listSilent({ nodes, takenAtMs }: Seen): readonly Trouble[] {
  return nodes.flatMap(({ node, agent, usage }): Trouble[] => {
    const silentMs = agent ? takenAtMs - agent.seenAtMs : 0
    if (!agent || silentMs < SILENT_AFTER_MS || silentMs > GONE_AFTER_MS) return []
    const held =
      usage.onDisk.oursBytes > 0 ? `; its copies take ${formatByteSize(usage.onDisk.oursBytes)}` : ''
    const command = `ssh ${node} systemctl status dsc-agent`
    return [
      {
        kind: 'silent',
        text: `${node}: its agent no longer reports${held}`,
        sinceMs: agent.seenAtMs,
        command,
      },
    ]
  })
}
