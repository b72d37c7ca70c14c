import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import { formatNames } from '../../model/format-names.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { PastDeed } from './past-deeds.js'

/** A deed that was taken back, and the parts of it that could not be. */
export interface Undone {
  readonly deed: PastDeed
  readonly done: readonly RecordEvent[]
  readonly refused: readonly { readonly dataset: string; readonly reason: string }[]
}

/** Datasets that a sentence names; the rest are counted. */
const NAMED_DATASETS = 3

const SUBJECTS: Readonly<Record<PastDeed['kind'], string>> = {
  evict: 'eviction',
  cleanup: 'cleanup',
  unlock: 'unlock',
  release: 'release',
}

/** `eviction of flowers, 4 GiB`. */
export function describeDeed({ kind, events }: Pick<PastDeed, 'kind' | 'events'>): string {
  const names = [...new Set(events.map(({ dataset }) => dataset))]
  const bytes = events.reduce((sum, event) => sum + (measureEvent(event) ?? 0), 0)
  const size = bytes > 0 ? `, ${formatByteSize(bytes)}` : ''
  return `${SUBJECTS[kind]} of ${formatNames(names, NAMED_DATASETS)}${size}`
}

/** `took back ada's eviction of flowers, 4 GiB`. */
export function describeUndone({ deed, done, refused }: Undone): string {
  const rest = refused.length > 0 ? `; ${formatCount(refused.length, 'part')} of it not` : ''
  return `took back ${deed.by}'s ${describeDeed({ kind: deed.kind, events: done })}${rest}`
}

/** Bytes on disk of an evicted copy; undefined for other events. */
export function measureEvent({ kind, detail }: RecordEvent): number | undefined {
  return kind === 'evicted' && typeof detail.chargedBytes === 'number' ? detail.chargedBytes : undefined
}
