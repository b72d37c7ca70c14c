import type { SampleFolder } from '../samples/index-samples.js'
import { LocalSource } from './local-source.js'
import type { SampleSupply } from './sample-supply.js'

/** Samples of a folder of this machine. */
export function folderSupply(
  folder: Pick<SampleFolder, 'root' | 'table'>,
  { mix, listing }: Pick<SampleSupply, 'mix' | 'listing'> = {},
): SampleSupply {
  const { root, table } = folder
  return { table, folder, mix, listing, makeSource: ({ pool }) => new LocalSource(root, table, pool) }
}
