import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DscError } from '../failure/dsc-error.js'
import { parseWord } from '../failure/parse-word.js'
import { type Dataset, deriveDatasetName, parseSourceUrl } from '../model/dataset.js'
import { findClosest } from '../model/find-closest.js'
import type { Surroundings } from './surroundings.js'

/**
 * Finds the dataset that a user names: one of dsc.yaml, one added to the record, or a source URL used as it is
 * (which is then added to the record under a name derived from it). Rejects with DATASET_UNKNOWN.
 */
export async function resolveDataset(context: Surroundings, raw: string): Promise<Dataset> {
  const { datasets } = await context.config()
  if (raw.includes('://')) {
    const declared = datasets.find(({ source }) => source === raw)
    if (declared) return declared
    parseWord(parseSourceUrl, raw)
    const record = await context.openRecord()
    const name = deriveDatasetName(raw)
    const known = await record.findDataset(name)
    if (known?.source === raw) return known
    const dataset: Dataset = { name, source: raw, include: [], exclude: [] }
    await record.saveDataset(dataset, context.nowMs())
    return dataset
  }
  const declared = datasets.find(({ name }) => name === raw)
  if (declared) return declared
  const record = await context.openRecord()
  const added = await record.findDataset(raw)
  if (added) return added
  const names = [...datasets, ...(await record.listDatasets())].map(({ name }) => name)
  const near = findClosest(raw, names)
  throw new DscError('DATASET_UNKNOWN', `no dataset is called ${raw}`, {
    hint: near ? `dsc prepare ${near}` : describeMissing(raw),
  })
}

function describeMissing(raw: string): string {
  return raw.includes('/')
    ? `dsc prepare ${pathToFileURL(`${resolve(raw)}/`).href} (a folder is named by its URL)`
    : `dsc dataset add ${raw} s3://bucket/prefix/`
}
