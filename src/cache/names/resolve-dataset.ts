import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import { type Dataset, deriveDatasetName, type Filters } from '../../model/dataset.js'
import { findHubPage, parseSourceUrl } from '../../model/source-url.js'
import type { Surroundings } from '../surroundings.js'
import { unknownDataset } from './unknown-dataset.js'

/**
 * Finds the dataset that a user names: one in dsc.yaml, one added to the record, or a source URL, used under a name
 * derived from it (which the record learns once the source is listed). `filters` go with a URL only: a named dataset
 * has its own. Rejects with DATASET_UNKNOWN.
 */
export async function resolveDataset(
  context: Surroundings,
  named: string,
  filters: Partial<Filters> = {},
): Promise<Dataset> {
  const { datasets } = await context.config()
  const raw = findHubPage(named, process.env.HF_ENDPOINT) ?? named
  const { include = [], exclude = [] } = filters
  const isFiltered = include.length + exclude.length > 0
  if (raw.includes('://')) {
    const declared = isFiltered ? undefined : datasets.find(({ source }) => source === raw)
    if (declared) return declared
    parseWord(parseSourceUrl, raw)
    const record = await context.openRecord()
    const name = deriveDatasetName(raw, filters)
    const known = await record.findDataset(name)
    return known?.source === raw ? known : { name, source: raw, include, exclude }
  }
  if (isFiltered)
    throw new DscError('USAGE', `--include and --exclude go with a source URL, not with ${raw}`, {
      hint: `a dataset with a name has its own: dsc dataset add ${raw} <source> --include <glob>`,
    })
  const declared = datasets.find(({ name }) => name === raw)
  if (declared) return declared
  const record = await context.openRecord()
  const added = await record.findDataset(raw)
  if (added) return added
  // A dataset prepared by its URL and not listed yet, or one of which a rebuilt record has only copies.
  const copies = await record.listCopies({ dataset: raw }, context.nowMs())
  const copied = copies.findLast(({ source }) => source !== null)?.source
  if (copied) return copied
  throw await unknownDataset(context, raw, { command: 'dsc prepare', otherwise: describeMissing(raw) })
}

function describeMissing(raw: string): string {
  const slashed = /^(s3|hf|https?|file):\/*([^/].*)$/i.exec(raw)
  if (slashed)
    return `dsc prepare ${slashed[1]!.toLowerCase()}://${slashed[1] === 'file' ? '/' : ''}${slashed[2]}`
  if (/^(datasets\/)?\w[\w.-]*\/\w[\w.-]*$/.test(raw) && !existsSync(raw))
    return `dsc prepare hf://${raw} (a repository of a hub), or dsc prepare s3://${raw}/`
  return raw.includes('/')
    ? `dsc prepare ${pathToFileURL(`${resolve(raw)}/`).href} (dsc needs a URL, not a path)`
    : `dsc dataset add ${raw} s3://bucket/prefix/`
}
