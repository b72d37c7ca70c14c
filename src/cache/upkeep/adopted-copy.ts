import { randomBytes } from 'node:crypto'
import type { Listing } from '../../manifest/listing.js'
import type { Copy, Stripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { newCopy } from '../../model/new-copy.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { measureCopy } from '../download/measure-copy.js'

/** Who locks what may not be deleted as it is adopted. */
export const ADOPTION = 'dsc adopt'
/** Nobody could fetch it again. */
export const NO_SOURCE = 'no remote source is known'
/** Its owner did not have it adopted, or the file that says so is gone. */
export const NOT_MARKED = 'it is not marked as adopted by its owner'

/** What is on disk and is to become a copy of the record. */
interface FoundCopy {
  readonly copyId: string
  readonly node: string
  readonly dataset: Dataset
  readonly listing: Pick<Listing, 'version' | 'files' | 'contentBytes'>
  readonly stripe?: Stripe | undefined
  /** Where its manifest lies, and its files: elsewhere, where a folder was adopted. */
  readonly directory: string
  readonly path: string
  readonly isElsewhere: boolean
  /** Why it may not be deleted, for its lock; undefined: it may. */
  readonly keptBecause?: string | undefined
  readonly nowMs: number
}

/** The id of a copy in a directory that is there already, whose name ends with the id's end. */
export function createCopyId(directory?: string): string {
  const end =
    directory === undefined ? randomBytes(4).toString('hex') : directory.slice(directory.lastIndexOf('-') + 1)
  return randomBytes(4).toString('hex') + end
}

/** Measures what was found and describes it as a ready copy that nobody has used yet. */
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
    ...(stripe && { stripe }),
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
