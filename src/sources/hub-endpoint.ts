import { DscError } from '../failure/dsc-error.js'
import type { Dataset } from '../model/dataset.js'

export const DEFAULT_ENDPOINT = 'https://huggingface.co'

/** The hub of a dataset: that of its `endpoint`, else of HF_ENDPOINT, else huggingface.co. */
export function readHubEndpoint({ endpoint }: Pick<Dataset, 'endpoint'>): string {
  const raw = endpoint ?? (process.env.HF_ENDPOINT || DEFAULT_ENDPOINT)
  const url = URL.parse(raw)
  if (url && (url.protocol === 'https:' || url.protocol === 'http:'))
    return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
  throw new DscError('CONFIG_INVALID', `expected the URL of a hub, found ${JSON.stringify(raw)}`, {
    hint: 'set endpoint: (or HF_ENDPOINT) to one such as https://huggingface.co',
  })
}
