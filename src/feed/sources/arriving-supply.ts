import type { SampleTable } from '../../samples/sample-table.js'
import { type Arrivals, ArrivingSource } from './arriving-source.js'
import type { SampleSupply } from './sample-supply.js'

/** Samples from a folder of this machine whose files are still being downloaded. */
export function arrivingSupply(options: {
  readonly root: string
  readonly table: SampleTable
  readonly arrivals: Arrivals
  /** Whether to feed samples of shards once their shard is verified, or before. */
  readonly takes: 'proven' | 'unproven'
  /** See `SampleSupply`. */
  readonly listing: string
}): SampleSupply {
  const { root, table, arrivals, listing } = options
  // A plain file is verified during the download.
  const takes = table.isSharded ? options.takes : 'proven'
  return {
    table,
    listing,
    folder: { root, table },
    makeSource: ({ pool }) => new ArrivingSource({ root, table, pool, arrivals, takes }),
  }
}
