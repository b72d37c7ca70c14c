import { DscError } from '../../failure/dsc-error.js'
import { findClosest } from '../../model/find-closest.js'
import type { Surroundings } from '../surroundings.js'

/**
 * Rejects with DATASET_UNKNOWN unless dsc.yaml or the record knows a dataset of that name: added, copied to a node, or
 * in the history. `command` is the command that was asked for, such as `dsc evict`; the hint repeats it with the
 * nearest name.
 */
export async function requireKnownDataset(
  context: Surroundings,
  name: string,
  command: string,
): Promise<void> {
  const { datasets } = await context.config()
  if (datasets.some((declared) => declared.name === name)) return
  const record = await context.openRecord()
  if (await record.findDataset(name)) return
  if ((await record.listCopies({ dataset: name }, context.nowMs())).length > 0) return
  if ((await record.listEvents({ dataset: name, limit: 1 })).length > 0) return
  throw await unknownDataset(context, name, { command, otherwise: 'dsc dataset ls' })
}

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
    known.find(({ source }) => source === raw)?.name ??
    findClosest(
      raw,
      known.map(({ name }) => name),
    )
  return new DscError('DATASET_UNKNOWN', `no dataset is called ${raw}`, {
    hint: near === undefined ? hints.otherwise : `${hints.command} ${near}`,
  })
}
