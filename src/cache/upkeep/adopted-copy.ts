import { randomBytes } from 'node:crypto'
import type { Listing } from '../../manifest/listing.js'
import type { Copy, Stripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { newCopy } from '../../model/new-copy.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { measureCopy } from '../download/measure-copy.js'

/** Owner of the locks on adopted copies that must not be deleted. */
export const ADOPTION = 'dsc adopt'
/** Lock reason: dsc could not fetch it again. */
export const NO_SOURCE = 'no remote source is known'
/** Lock reason: its owner did not adopt it, or the file that says so is gone. */
export const NOT_MARKED = 'it is not marked as adopted by its owner'

/** A copy found on disk, to add to the record. */
interface FoundCopy {
  readonly copyId: string
  readonly node: string
  readonly dataset: Dataset
  readonly listing: Pick<Listing, 'version' | 'files' | 'contentBytes'>
  readonly stripe?: Stripe | undefined
  /** Directory of its manifest. Its files may be elsewhere, if a folder was adopted. */
  readonly directory: string
  readonly path: string
  readonly isElsewhere: boolean
  /** Lock reason, if it must not be deleted; undefined: it may be. */
  readonly keptBecause?: string | undefined
  readonly nowMs: number
}

/** Creates the id of a copy; if its directory already exists, the id ends like the directory's name. */
export function createCopyId(directory?: string): string {
  const end =
    directory === undefined ? randomBytes(4).toString('hex') : directory.slice(directory.lastIndexOf('-') + 1)
  return randomBytes(4).toString('hex') + end
}

/** Measures a found copy and describes it as ready and never used. */
export async function describeAdopted(found: FoundCopy): Promise<Copy> {
  const { dataset, listing, stripe, isElsewhere, keptBecause, nowMs } = found
  const manifest = await measureCopy(found.directory)
  const files = isElsewhere ? await measureCopy(found.path) : { diskBytes: 0, inodes: 0 }
  const chargedBytes = manifest.diskBytes + files.diskBytes
  const known = {
    copyId: found.copyId,
    dataset: dataset.name,
    node: found.node,
    origin: isElsewhere ? ('local' as const) : parseSourceUrl(dataset.source).scheme,
    source: keptBecause === NO_SOURCE ? null : dataset,
    directory: found.directory,
    lastTask: null,
    stripe,
  }
  return {
    ...newCopy(known, nowMs),
    version: listing.version,
    state: 'ready',
    path: found.path,
    chargedBytes,
    chargedInodes: manifest.inodes + files.inodes,
    writtenBytes: chargedBytes,
    files: listing.files,
    contentBytes: listing.contentBytes,
    lock: keptBecause === undefined ? null : { by: ADOPTION, reason: keptBecause, atMs: nowMs },
    readyAtMs: nowMs,
  }
}
