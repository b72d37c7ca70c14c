import type { HubUrl } from '../../model/source-url.js'
import { DEFAULT_ENDPOINT } from '../hub-endpoint.js'
import type { OpenFetcher } from '../source.js'
import type { Authorize } from '../web-client.js'
import { WebFetcher } from '../web-fetcher.js'
import { speakHub } from './hub-failure.js'
import { filePath, pagePath } from './hub-paths.js'

/** Location of a repository. Plain data, so that it can be passed to a worker. */
export interface HubLocation {
  /** `https://host[/path]`, without a trailing slash. */
  readonly endpoint: string
  readonly url: HubUrl
  /** Certificates (PEM) that must have signed the server's own; undefined = those that Node.js trusts. */
  readonly ca: string | undefined
}

/** Opens a fetcher for a repository that the main thread has described. */
export const openHubFetcher: OpenFetcher = ({ location, ask, connections }) => {
  let token: Promise<unknown> | undefined
  const authorize = async () => {
    token ??= ask()
    return bearer((await token) as string | undefined)
  }
  return createHubFetcher(location as HubLocation, authorize, connections)
}

/** Reads a repository's files at the commit they were listed at, so that they cannot change in between. */
export function createHubFetcher(
  { endpoint, url, ca }: HubLocation,
  authorize: Authorize,
  connections: number,
): WebFetcher {
  const dialect = speakHub(`${endpoint}${pagePath(url)}`)
  const locate = ({ key, versionId }: { readonly key: string; readonly versionId: string | null }) => {
    const urlOf = (path: string) => `${endpoint}${filePath(url, versionId ?? url.revision, path)}`
    const what = `hf:/${pagePath(url)}/${url.folder}${key}`
    const single = url.folder.slice(0, -1)
    const mayBeSingle = `/${single}`.endsWith(`/${key}`)
    return { url: urlOf(url.folder + key), what, otherwise: mayBeSingle ? urlOf(single) : undefined }
  }
  // Mirrors may ignore ranges: then an object comes in one piece instead of once for each part.
  const hasRanges = endpoint === DEFAULT_ENDPOINT
  // The etags of large files come from the server that stores them, not from the hub.
  const protocol = { locate, dialect, hasRanges, hasEtags: false }
  return new WebFetcher(protocol, { connections, ca, authorize, home: endpoint })
}

/** The header that a token is sent in. */
export function bearer(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}
