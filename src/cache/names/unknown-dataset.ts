import { DscError } from '../../failure/dsc-error.js'
import { isSameSource } from '../../model/dataset.js'
import { findClosest } from '../../model/find-closest.js'
import type { Surroundings } from '../surroundings.js'

/** The failure for an unknown name. Its hint is `command` with the nearest name, if one is close. */
export async function unknownDataset(
  context: Surroundings,
  raw: string,
  hints: { readonly command: string; readonly otherwise: string },
): Promise<DscError> {
  const { datasets } = await context.config()
  const record = await context.openRecord()
  const known = [...datasets, ...(await record.listDatasets())]
  const near =
    known.find(({ source }) => isSameSource(source, raw))?.name ??
    findClosest(
      raw,
      known.map(({ name }) => name),
    )
  return new DscError('DATASET_UNKNOWN', `no dataset is called ${raw}`, {
    hint: near === undefined ? hints.otherwise : `${hints.command} ${near}`,
  })
}
