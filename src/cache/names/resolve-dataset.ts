import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import {
  type Dataset,
  deriveDatasetName,
  isSameSource,
  nameForOwner,
  type SourceSettings,
} from '../../model/dataset.js'
import { findHubPage, parseSourceUrl } from '../../model/source-url.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { Surroundings } from '../surroundings.js'
import { unknownDataset } from './unknown-dataset.js'

/**
 * Finds the dataset that a user names: one in dsc.yaml, one added to the record, or a source (a URL, or a path such as
 * `./photos`), used under a name derived from it (which the record learns once the source is listed). `settings` go
 * with a source only: a named dataset has its own. Rejects with DATASET_UNKNOWN.
 */
export async function resolveDataset(
  context: Surroundings,
  named: string,
  settings: SourceSettings = {},
): Promise<Dataset> {
  const { datasets, uidAtDoor } = await context.config()
  const raw = readSource(named)
  const given = Object.entries(settings).filter(([, value]) => value !== undefined)
  if (raw.includes('://')) {
    parseWord(parseSourceUrl, raw)
    const declared = given.length === 0 ? datasets.find(({ source }) => isSameSource(source, raw)) : undefined
    if (declared) return declared
    const record = await context.openRecord()
    const name = deriveDatasetName(raw, settings)
    const ownName = uidAtDoor === undefined ? undefined : nameForOwner(name, uidAtDoor)
    const copied = ownName && (await findCopied(record, ownName, context.nowMs()))
    if (copied && isSameSource(copied.source, raw)) return copied
    const known = await record.findDataset(name)
    const own =
      known && isSameSource(known.source, raw) ? known : { name, source: raw, include: [], exclude: [] }
    return { ...own, ...Object.fromEntries(given) }
  }
  const declared = datasets.find(({ name }) => name === raw)
  if (given.length > 0) {
    const flags = given.map(([key]) => `--${key}`).join(', ')
    const words = given.flatMap(([key, value]) => [`--${key}`, ...(value === true ? [] : [value].flat())])
    throw new DscError('USAGE', `${flags}: only for a source such as s3://bucket/prefix/, not for ${raw}`, {
      hint: declared
        ? `set ${given.map(([key]) => key).join(', ')} of ${raw} in dsc.yaml`
        : `dsc dataset add ${raw} s3://bucket/prefix/ ${words.join(' ')}`,
    })
  }
  if (declared) return declared
  const record = await context.openRecord()
  const added = await record.findDataset(raw)
  if (added) return added
  // A dataset prepared by its URL and not listed yet, or one of which a rebuilt record has only copies.
  const copied = await findCopied(record, raw, context.nowMs())
  if (copied) return copied
  throw await unknownDataset(context, raw, { command: 'dsc prepare', otherwise: describeMissing(raw) })
}

async function findCopied(record: RecordStore, dataset: string, nowMs: number): Promise<Dataset | undefined> {
  const copies = await record.listCopies({ dataset }, nowMs)
  return copies.findLast(({ source }) => source !== null)?.source ?? undefined
}

/** Whether a user names a source rather than a dataset: by its URL, or by a path that shows that it is one. */
export function isSource(named: string): boolean {
  return named.includes('://') || PATH.test(named)
}

/** The URL that a user means: of a folder by its path, of a repository by its page; any other word stays as it is. */
export function readSource(named: string): string {
  return findFolder(named) ?? findHubPage(named, process.env.HF_ENDPOINT) ?? named
}

/** A path that no dataset is called: absolute, or from `.` or `..`. */
const PATH = /^(\.{1,2}$|\.{0,2}\/)/

/** The URL of a folder that a path names. */
function findFolder(named: string): string | undefined {
  return PATH.test(named) ? pathToFileURL(`${resolve(named)}/`).href : undefined
}

function describeMissing(raw: string): string {
  const slashed = /^(s3|hf|https?|file):\/*([^/].*)$/i.exec(raw)
  if (slashed)
    return `dsc prepare ${slashed[1]!.toLowerCase()}://${slashed[1] === 'file' ? '/' : ''}${slashed[2]}`
  if (/^(datasets\/)?\w[\w.-]*\/\w[\w.-]*$/.test(raw) && !existsSync(raw))
    return `dsc prepare hf://${raw} (a repository of a hub), or dsc prepare s3://${raw}/`
  return raw.includes('/') || existsSync(raw)
    ? `dsc prepare ./${raw}`
    : `dsc dataset add ${raw} s3://bucket/prefix/`
}
