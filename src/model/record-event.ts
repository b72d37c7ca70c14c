/** Events of a copy, kept for `dsc why` and `dsc history`; `fed` only for sums, as each feed writes it again and again. */
export type RecordEventKind =
  | 'staging-started'
  | 'staging-taken-over'
  | 'staged'
  | 'staging-failed'
  | 'refused'
  | 'evicted'
  | 'eviction-refused'
  | 'leased'
  | 'released'
  | 'lease-expired'
  | 'locked'
  | 'unlocked'
  | 'adopted'
  | 'repaired'
  | 'damaged'
  | 'forgotten'
  | 'undone'
  | 'fed'

/** One line of the record's history. */
export interface RecordEvent {
  readonly sequence: number
  readonly atMs: number
  readonly kind: RecordEventKind
  readonly node: string
  readonly dataset: string
  readonly copyId: string | null
  readonly task: string | null
  /** One sentence for people: the reason with its numbers. */
  readonly reason: string
  /** Facts for scripts. */
  readonly detail: Readonly<Record<string, unknown>>
}
