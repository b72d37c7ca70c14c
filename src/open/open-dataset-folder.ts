import { readdirSync, statSync } from 'node:fs'
import { join, posix, resolve } from 'node:path'
import type { NodeSurroundings } from '../cache/api/node-api.js'
import type { Surroundings } from '../cache/surroundings.js'
import { openOrClose } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import { isGone } from '../platform/is-gone.js'
import { filesOfSplit } from '../samples/plan/split-files.js'
import type { Preparing } from './begin-preparing.js'

/** A folder of samples, leased to this process if it is a copy of a dataset. */
export interface DatasetFolder {
  readonly folder: string
  /** The folder's copy; undefined if the folder is not one of ours. */
  readonly copy: Copy | undefined
  /** The split whose files are to be chosen by their names; undefined: all files of the folder. */
  readonly split: string | undefined
  /** Ends the lease; if the process dies first, the lease ends as well. */
  release(): Promise<void>
}

/**
 * The folder that a feed reads: `target` itself if it is a directory, else a copy of the dataset of that name on this
 * node, staged first if needed. This is the one place where a name becomes a path.
 */
export async function openDatasetFolder(
  context: NodeSurroundings,
  target: string,
  split: string | undefined,
): Promise<DatasetFolder> {
  if (isDirectory(target))
    return { ...(await findSplit(target, split)), copy: undefined, release: async () => {} }
  if (/^[./]/.test(target))
    throw new DscError('COPY_NOT_FOUND', `${target} is no directory`, { hint: 'dsc status' })
  const { beginPreparing } = await import('./begin-preparing.js')
  return toFolder(context, await beginPreparing(context, target, { isReadWhileComing: false }), split)
}

/** Does the same as `openDatasetFolder`, but stages nothing: rejects with COPY_NOT_FOUND if no copy is ready here. */
export async function openReadyFolder(
  context: NodeSurroundings,
  target: string,
  split: string | undefined,
): Promise<DatasetFolder> {
  if (!isDirectory(target) && !/^[./]/.test(target)) await requireReady(context, target)
  return openDatasetFolder(context, target, split)
}

async function requireReady(context: Surroundings, target: string): Promise<void> {
  const [{ isOfDefinition }, { resolveDataset }] = await Promise.all([
    import('../cache/leases/take-ready-copy.js'),
    import('../cache/names/resolve-dataset.js'),
  ])
  const dataset = await resolveDataset(context, target)
  const { node } = await context.config()
  const record = await context.openRecord()
  const wanted = { dataset: dataset.name, node, states: ['ready'] as const }
  const copies = await record.listCopies(wanted, context.nowMs())
  if (copies.some((copy) => !copy.stripe && isOfDefinition(copy, dataset) && !isGone(copy.path))) return
  throw new DscError(
    'COPY_NOT_FOUND',
    `${target} has no ready copy on node ${node}, and nothing is staged for a plan`,
    { hint: `dsc prepare ${target}, or --cold to see how it would come` },
  )
}

/** The folder of a dataset once it is ready; ends the lease if that fails. */
export async function toFolder(
  context: Surroundings,
  { prepared, release }: Preparing,
  split: string | undefined,
): Promise<DatasetFolder> {
  return openOrClose(async (closers) => {
    closers.add(release)
    const copy = await prepared
    context.report.progress(undefined)
    return { ...(await findSplit(copy.path, split)), copy, release }
  })
}

/** The folder of a split or, where the names of files tell splits apart, the folder of all of them. */
async function findSplit(
  folder: string,
  split: string | undefined,
): Promise<Pick<DatasetFolder, 'folder' | 'split'>> {
  if (split === undefined) return { folder: resolve(folder), split: undefined }
  if (isDirectory(join(folder, split))) return { folder: resolve(folder, split), split: undefined }
  const { readCardSplit } = await import('../samples/card-splits.js')
  const listed = () => readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const isNamed = () => filesOfSplit(listed(), (path) => path, split).length > 0
  if (readCardSplit(folder, split) !== undefined || isNamed()) return { folder: resolve(folder), split }
  throw noSplit(folder, split)
}

/** The prefix of keys in the folder of the split. */
export function prefixOf(split: string | undefined): string {
  const folder = posix.normalize(split ?? '.').replace(/\/+$/, '')
  return folder === '.' ? '' : `${folder}/`
}

/** The error for a folder without the split. */
export function noSplit(folder: string, split: string): DscError {
  return new DscError(
    'COPY_NOT_FOUND',
    `${folder} has neither a folder nor files named for the split ${split}`,
    { hint: `ls ${folder}` },
  )
}

/** Whether a target is a path, not a name. */
export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
