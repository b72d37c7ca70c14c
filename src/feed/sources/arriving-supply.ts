import type { SampleTable } from '../../samples/sample-table.js'
import { type Arrivals, ArrivingSource } from './arriving-source.js'
import type { SampleSupply } from './sample-supply.js'

/** Samples of a folder of this machine whose files are still coming. */
export function arrivingSupply(options: {
  readonly root: string
  readonly table: SampleTable
  readonly arrivals: Arrivals
  /** Whether samples of shards are fed once their shard is proven, or before. */
  readonly takes: 'proven' | 'unproven'
  /** As in `SampleSupply`. */
  readonly listing: string
}): SampleSupply {
  const { root, table, arrivals, listing } = options
  // A plain file is proven while it comes.
  const takes = table.isSharded ? options.takes : 'proven'
  return {
    table,
    listing,
    folder: { root, table },
    makeSource: ({ pool }) => new ArrivingSource({ root, table, pool, arrivals, takes }),
  }
}
