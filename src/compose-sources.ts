import { join } from 'node:path'
import type { KeptRepository } from './cache/cache.js'
import { DscError } from './failure/dsc-error.js'
import { unlessRejected } from './failure/unless-code.js'
import { type Dataset, findOwner } from './model/dataset.js'
import { findHubUrl, nameHubFolder, parseSourceUrl, type SourceScheme } from './model/source-url.js'
import { findHomeDirectory } from './platform/this-user.js'
import { findHubCache } from './sources/hf/hub-home.js'
import { readHubEndpoint } from './sources/hub-endpoint.js'
import type { HandedAccess, OwnAccess } from './sources/own-access.js'
import type { Source } from './sources/source.js'

type OpenSource = (dataset: Dataset, own?: OwnAccess) => Promise<Source>

/** Each is loaded when it is needed. What transfer threads read by the same schemes is in `transfer-worker.ts`. */
const OPENERS: Readonly<Record<SourceScheme, OpenSource>> = {
  s3: async (dataset, own) =>
    (await import('./sources/s3/s3-source.js')).openS3Source(dataset, own?.scheme === 's3' ? own : undefined),
  file: async (dataset) => (await import('./sources/file/file-source.js')).openFileSource(dataset),
  hf: async (dataset, own) =>
    (await import('./sources/hf/hub-source.js')).openHubSource(
      dataset,
      own?.scheme === 'hf' ? own : undefined,
    ),
  oci: async (dataset) => (await import('./sources/oci/oci-source.js')).openOciSource(dataset),
  https: openWeb,
  http: openWeb,
}

async function openWeb(dataset: Dataset): Promise<Source> {
  return (await import('./sources/web/web-source.js')).openWebSource(dataset)
}

/** Rejects with NOT_PERMITTED for what one user reads with credentials of their own, unless `own` has them. */
export async function openSource(dataset: Dataset, own?: OwnAccess): Promise<Source> {
  const { scheme } = parseSourceUrl(dataset.source)
  if (findOwner(dataset.name) === undefined || own?.scheme === scheme) return OPENERS[scheme](dataset, own)
  throw new DscError('NOT_PERMITTED', `${dataset.name} is read with its user's own credentials alone`, {
    hint: `dsc prepare ${dataset.source}, run by that user`,
  })
}

/** Where the hub's own clients keep a repository's contents for this user. */
export function findKept({ source }: Dataset): KeptRepository | undefined {
  const url = findHubUrl(source)
  const cache = findHubCache(process.env, findHomeDirectory())
  return url && { directory: join(cache, nameHubFolder(url)), within: url.folder }
}

/**
 * Finds what this user shows to a source, as the AWS CLI or the hub's own clients would. Undefined: nothing, or nothing
 * is handed over for such a source.
 */
export async function findOwnAccess(dataset: Dataset): Promise<HandedAccess | undefined> {
  if (dataset.anonymous) return undefined
  const { scheme } = parseSourceUrl(dataset.source)
  if (scheme === 's3') {
    const { findOwnKeys } = await import('./sources/s3/own-keys.js')
    return unlessRejected(['SOURCE_DENIED'], findOwnKeys(dataset)) // undefined: this user has no keys
  }
  if (scheme !== 'hf') return undefined
  const { findHubToken } = await import('./sources/hf/hub-token.js')
  const token = await findHubToken(process.env, findHomeDirectory())
  return token === undefined ? undefined : { scheme, endpoint: readHubEndpoint(dataset), token }
}
