import { formatSourceUrl } from '../../model/source-url.js'
import type { OpenFetcher } from '../source.js'
import type { Authorize } from '../web-client.js'
import { WebFetcher } from '../web-fetcher.js'
import { speakRegistry } from './registry-failure.js'
import type { OciLocation, Permit } from './registry-token.js'

/** How long a thread uses the headers that the main thread gave it, in ms: less than any token lives. */
const THREAD_PERMIT_MS = 10_000

/** Opens a fetcher for an artifact that the main thread has described. */
export const openOciFetcher: OpenFetcher = ({ location, ask, connections }) => {
  let asked: Promise<unknown> | undefined
  let askAgainAtMs = 0
  const authorize = async () => {
    if (performance.now() >= askAgainAtMs) {
      askAgainAtMs = performance.now() + THREAD_PERMIT_MS
      asked = ask()
    }
    return (await asked) as Permit['headers']
  }
  return createOciFetcher(location as OciLocation, authorize, connections)
}

/** Reads the blobs of a repository by their digests. */
export function createOciFetcher(
  { url, base, ca }: OciLocation,
  authorize: Authorize,
  connections: number,
): WebFetcher {
  const locate = ({ key, versionId }: { readonly key: string; readonly versionId: string | null }) => ({
    url: `${base}/v2/${url.repository}/blobs/${versionId}`,
    what: `${formatSourceUrl(url)}: ${key}`,
  })
  // Registries need not know ranges. Etags are of the server that stores the blobs; the digest proves them.
  const protocol = { locate, dialect: speakRegistry(url.registry), hasRanges: false, hasEtags: false }
  return new WebFetcher(protocol, { connections, ca, authorize, home: base })
}
