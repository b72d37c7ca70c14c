import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { formatSourceUrl, parseSourceUrl } from '../../model/source-url.js'
import { findHomeDirectory } from '../../platform/this-user.js'
import { readWebAuthorities } from '../read-certificates.js'
import type { Source } from '../source.js'
import { WebClient } from '../web-client.js'
import { bearer, createHubFetcher, type HubLocation } from './hub-fetcher.js'
import { DEFAULT_ENDPOINT } from './hub-paths.js'
import { findHubToken } from './hub-token.js'
import { listRepository } from './list-repository.js'

const LISTING_CONNECTIONS = 2

/** Opens a repository of a Hugging Face hub: that of `endpoint`, else of HF_ENDPOINT, else huggingface.co. */
export function openHubSource(dataset: Dataset): Source {
  const url = parseSourceUrl(dataset.source)
  if (url.scheme !== 'hf') throw new RangeError(`expected an hf:// source, found ${dataset.source}`)
  const what = formatSourceUrl(url)
  const endpoint = readEndpoint(dataset.endpoint ?? (process.env.HF_ENDPOINT || DEFAULT_ENDPOINT))
  const getToken = async () =>
    dataset.anonymous ? undefined : findHubToken(process.env, findHomeDirectory())
  const authorize = async () => bearer(await getToken())
  const locate = async (): Promise<HubLocation> => ({ endpoint, url, ca: await readWebAuthorities() })
  return {
    url: what,
    async *list(options) {
      const { ca } = await locate()
      const client = new WebClient({ connections: LISTING_CONNECTIONS, ca, authorize, home: endpoint })
      try {
        yield* listRepository(client, { endpoint, url, what }, options)
      } finally {
        client.close()
      }
    },
    openFetcher: async ({ connections }) => createHubFetcher(await locate(), authorize, connections),
    describeAccess: async () => ({ scheme: 'hf', location: await locate(), answer: getToken }),
    async close() {},
  }
}

function readEndpoint(raw: string): string {
  const url = URL.parse(raw)
  if (url && (url.protocol === 'https:' || url.protocol === 'http:'))
    return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
  throw new DscError('CONFIG_INVALID', `expected the URL of a hub, found ${JSON.stringify(raw)}`, {
    hint: 'set endpoint: (or HF_ENDPOINT) to one such as https://huggingface.co',
  })
}
