import { atEndNow } from '../../failure/closers.js'
import type { Dataset } from '../../model/dataset.js'
import { formatSourceUrl, parseSourceUrl } from '../../model/source-url.js'
import { findHomeDirectory } from '../../platform/this-user.js'
import { readHubEndpoint } from '../hub-endpoint.js'
import type { OwnAccess } from '../own-access.js'
import { readWebAuthorities } from '../read-certificates.js'
import type { Source } from '../source.js'
import { WebClient } from '../web-client.js'
import { bearer, createHubFetcher, type HubLocation } from './hub-fetcher.js'
import { findHubToken } from './hub-token.js'
import { listRepository } from './list-repository.js'

const LISTING_CONNECTIONS = 2

type OwnHubAccess = Extract<OwnAccess, { readonly scheme: 'hf' }>

/** Opens a repository of a Hugging Face hub. `own`: read it as this user instead, at the hub that the token is for. */
export function openHubSource(dataset: Dataset, own?: OwnHubAccess): Source {
  const url = parseSourceUrl(dataset.source)
  if (url.scheme !== 'hf') throw new RangeError(`expected an hf:// source, found ${dataset.source}`)
  const what = formatSourceUrl(url)
  const endpoint = readHubEndpoint(own ?? dataset)
  const getToken = async () => {
    if (own) return own.token
    return dataset.anonymous ? undefined : findHubToken(process.env, findHomeDirectory())
  }
  const authorize = async () => bearer(await getToken())
  const locate = async (): Promise<HubLocation> => ({ endpoint, url, ca: await readWebAuthorities() })
  return {
    url: what,
    async *list(options) {
      const { ca } = await locate()
      const client = new WebClient({ connections: LISTING_CONNECTIONS, ca, authorize, home: endpoint })
      using _ = atEndNow(() => client.close())
      yield* listRepository(client, { endpoint, url, what }, options)
    },
    openFetcher: async ({ connections }) => createHubFetcher(await locate(), authorize, connections),
    describeAccess: async () => ({ scheme: 'hf', location: await locate(), answer: getToken }),
    async close() {},
  }
}
