import { DscError } from '../../failure/dsc-error.js'
import { isSameSource } from '../../model/dataset.js'
import { findClosest } from '../../model/find-closest.js'
import type { Surroundings } from '../surroundings.js'

/** The failure for an unknown name. If a known one is close, it asks for that, and its hint is `command` with it. */
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
  const meant = near === undefined ? '' : `. Did you mean ${near}?`
  return new DscError('DATASET_UNKNOWN', `no dataset is called ${raw}${meant}`, {
    hint: near === undefined ? hints.otherwise : `${hints.command} ${near}`,
  })
}
