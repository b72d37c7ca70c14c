import { createHash } from 'node:crypto'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { isLocalHost } from '../../http/local-address.js'
import type { Dataset } from '../../model/dataset.js'
import { formatSourceUrl, type OciUrl, parseSourceUrl } from '../../model/source-url.js'
import { findHomeDirectory } from '../../platform/this-user.js'
import { readWebAuthorities } from '../read-certificates.js'
import type { ListOptions, Source } from '../source.js'
import { WebClient } from '../web-client.js'
import { createOciFetcher } from './oci-fetcher.js'
import { readManifest } from './read-manifest.js'
import { findRegistryCredentials } from './registry-credentials.js'
import { speakRegistry } from './registry-failure.js'
import { type OciLocation, type Permit, RegistryTokens } from './registry-token.js'

const ACCEPT = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ')
/** The registry's own limit for manifests (Distribution Specification 1.1, "Pushing Manifests"). */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024
/** An index may name another one; nobody nests them deeper. */
const MAX_DEPTH = 3

/** Opens the files of an artifact in an OCI registry; its digests prove every byte. */
export function openOciSource(dataset: Dataset): Source {
  const url = parseSourceUrl(dataset.source)
  if (url.scheme !== 'oci') throw new RangeError(`expected an oci:// source, found ${dataset.source}`)
  const what = formatSourceUrl(url)
  const host = url.registry === 'docker.io' ? 'registry-1.docker.io' : url.registry
  const base = dataset.endpoint?.replace(/\/+$/, '') ?? `${isPlain(host) ? 'http' : 'https'}://${host}`
  let tokens: RegistryTokens | undefined
  const locate = async (): Promise<OciLocation> => ({ url, base, ca: await readWebAuthorities() })
  const permit = async (): Promise<Permit> => {
    tokens ??= new RegistryTokens({
      ...(await locate()),
      findCredentials: async () =>
        dataset.anonymous ? undefined : findRegistryCredentials(host, process.env, findHomeDirectory()),
    })
    return tokens.permit()
  }
  const authorize = async () => (await permit()).headers
  return {
    url: what,
    async *list(options) {
      const { ca } = await locate()
      const accepting = async () => ({ ...(await authorize()), accept: ACCEPT })
      const client = new WebClient({ connections: 1, ca, authorize: accepting, home: base })
      using _ = atEndNow(() => client.close())
      yield await listLayers(client, { url, base, what }, options)
    },
    openFetcher: async ({ connections }) => createOciFetcher(await locate(), authorize, connections),
    describeAccess: async () => ({ scheme: 'oci', location: await locate(), answer: authorize }),
    async close() {},
  }
}

async function listLayers(
  client: WebClient,
  { url, base, what }: { readonly url: OciUrl; readonly base: string; readonly what: string },
  options: ListOptions,
) {
  let reference = url.reference.slice(1)
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const { body } = await client.readText(`${base}/v2/${url.repository}/manifests/${reference}`, {
      ...options,
      what,
      dialect: speakRegistry(url.registry),
      maxBytes: MAX_MANIFEST_BYTES,
    })
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`
    if (reference.includes(':') && reference !== digest)
      throw new DscError(
        'SOURCE_UNREACHABLE',
        `${what}: expected the manifest ${reference}, found ${digest}`,
        { hint: 'the registry, or something on the way to it, changed the manifest' },
      )
    const content = readManifest(body.toString('utf8'), { what, onLeftOut: options.onLeftOut })
    if ('objects' in content) return content.objects
    reference = content.next
  }
  throw new DscError('SOURCE_UNREACHABLE', `${what}: its index leads on to more than ${MAX_DEPTH} others`, {
    hint: 'name the manifest itself: oci://registry/name@sha256:…',
  })
}

/** As docker does: a registry on this machine speaks plain HTTP. */
function isPlain(registry: string): boolean {
  return isLocalHost(new URL(`http://${registry}`).hostname)
}
