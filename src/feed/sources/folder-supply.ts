import type { SampleFolder } from '../../samples/index-samples.js'
import { LocalSource } from './local-source.js'
import { RowGroupSource } from './row-group-source.js'
import type { SampleSupply } from './sample-supply.js'

/** Samples from a folder of this machine. */
export function folderSupply(
  folder: Pick<SampleFolder, 'root' | 'table'>,
  { mix, listing }: Pick<SampleSupply, 'mix' | 'listing'> = {},
): SampleSupply {
  const { root, table } = folder
  return {
    ...{ table, folder, mix, listing, isWhole: true },
    makeSource: ({ pool }) => new LocalSource(root, table, pool),
  }
}

/** Rows from Parquet files of this machine that are not unpacked. */
export function groupSupply(
  { table, groups }: Pick<SampleFolder, 'table' | 'groups'>,
  { listing }: Pick<SampleSupply, 'listing'> = {},
): SampleSupply {
  const makeSource: SampleSupply['makeSource'] = ({ arenaFile }) =>
    new RowGroupSource({ table, groups: groups!, arenaFd: arenaFile.fd })
  return { table, folder: undefined, listing, groups, makeSource }
}
