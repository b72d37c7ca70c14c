import type { Copy } from '../model/copy.js'
import type { RecordStore } from '../records/contract/record-store.js'

const MAX_EVENTS = 1000

/**
 * Ids of a dataset's copies that are damaged and not repaired since; no node reads from them. The newest `damaged` or
 * `repaired` entry in the history of each copy decides.
 */
export async function findDamagedCopies(record: RecordStore, dataset: string): Promise<ReadonlySet<string>> {
  const kinds = ['damaged', 'repaired'] as const
  const newestFirst = await record.listEvents({ dataset, kinds, limit: MAX_EVENTS })
  const seen = new Set<string | null>()
  const damaged = new Set<string>()
  for (const { copyId, kind } of newestFirst) {
    if (kind === 'damaged' && copyId !== null && !seen.has(copyId)) damaged.add(copyId)
    seen.add(copyId)
  }
  return damaged
}

/** Records in the history that a copy is damaged: no node reads from it until it is repaired. */
export async function markDamaged(
  record: RecordStore,
  copy: Pick<Copy, 'node' | 'dataset' | 'copyId'>,
  found: {
    readonly task: string
    readonly reason: string
    readonly detail: Readonly<Record<string, unknown>>
  },
): Promise<void> {
  const { node, dataset, copyId } = copy
  await record.addEvent({ atMs: record.nowMs(), kind: 'damaged', node, dataset, copyId, ...found })
}
