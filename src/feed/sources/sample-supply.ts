import type { SampleGroups } from '../../samples/plan/sample-groups.js'
import type { SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { ArenaFile } from '../arena/arena-file.js'
import type { MixPart } from '../plan/mix.js'
import type { ReaderPool } from '../threads/reader-pool.js'

/** Where an engine gets its samples. */
export interface SampleSupply {
  readonly table: SampleTable
  /** Folder of this machine for reader threads; undefined if they need none. */
  readonly folder: { readonly root: string; readonly table: SampleTable } | undefined
  /** Whether all of that folder is here, so that clients may map those of its files that nobody may write to. */
  readonly isWhole?: boolean
  /** Compared between states if a table has no fingerprint (`digestListing`). */
  readonly listing?: string | undefined
  /** Overrides the mix of the settings. */
  readonly mix?: readonly MixPart[] | undefined
  /** Samples are read in these groups, and the order goes through them. */
  readonly groups?: SampleGroups | undefined
  /** Makes the source, which writes into the arena. */
  makeSource(parts: { readonly pool: ReaderPool; readonly arenaFile: ArenaFile }): SampleSource
}
