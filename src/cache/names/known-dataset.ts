import { existsSync } from 'node:fs'
import { isSameSource, isUndeclared } from '../../model/dataset.js'
import type { Surroundings } from '../surroundings.js'
import { isSource, resolveDataset } from './resolve-dataset.js'
import { unknownDataset } from './unknown-dataset.js'

/**
 * Resolves with the name of the dataset that a user names as for `dsc prepare`: by a name or by the URL of its source.
 * Rejects with DATASET_UNKNOWN unless dsc.yaml or the record knows it: added, copied to a node, or in the history.
 * `command` is the command that was asked for, such as `dsc evict`; the hint repeats it with the nearest name.
 */
export async function requireKnownDataset(
  context: Surroundings,
  named: string,
  command: string,
): Promise<string> {
  const name = await nameDataset(context, named)
  const { datasets } = await context.config()
  if (datasets.some((declared) => declared.name === name)) return name
  const record = await context.openRecord()
  if (await record.findDataset(name)) return name
  if ((await record.listCopies({ dataset: name }, context.nowMs())).length > 0) return name
  if ((await record.listEvents({ dataset: name, limit: 1 })).length > 0) return name
  throw await unknownDataset(context, name, {
    command,
    otherwise: suggestPath(command, name) ?? 'dsc dataset ls',
  })
}

/** `dsc release ./photos` for `dsc release photos` in the folder above it: what was prepared by its path has no such name. */
function suggestPath(command: string, name: string): string | undefined {
  return existsSync(name) ? `${command} ./${name}` : undefined
}

/**
 * The name of the dataset with a source, also where the source was prepared with an endpoint of its own; any other word
 * stays as it is.
 */
export async function nameDataset(context: Surroundings, named: string): Promise<string> {
  if (!isSource(named)) return named
  const { name, source } = await resolveDataset(context, named)
  const { datasets } = await context.config()
  if (datasets.some((declared) => declared.name === name)) return name
  const record = await context.openRecord()
  if (await record.findDataset(name)) return name
  const known = await record.listDatasets()
  return known.find((one) => isSameSource(one.source, source) && isUndeclared(one))?.name ?? name
}
