import { DscError } from '../../failure/dsc-error.js'
import { redactUrl } from '../../failure/redact.js'
import { type Dataset, deriveDatasetName, findOwner, nameForOwner } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { readHubEndpoint } from '../../sources/hub-endpoint.js'
import { isKnownPlace } from '../../sources/known-place.js'
import { isHeaderText, type OwnAccess } from '../../sources/own-access.js'
import { type Catalog, chooseDataset, requireNameable, requireSource } from './choose-dataset.js'
import { CsiRefusal } from './csi-failure.js'
import type { VolumeRequest } from './volume-request.js'

/** The dataset of a volume. `own`: the credentials in its pod's Secret, which replace the agent's. */
export interface VolumeSource {
  readonly dataset: Dataset
  readonly own?: OwnAccess
}

/** Keys that a Secret may have, by the kind of source. */
const KEYS = {
  hf: ['HF_TOKEN', 'token', 'HF_ENDPOINT'],
  s3: ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_REGION', 'AWS_ENDPOINT_URL'],
} as const

/**
 * Chooses what a volume shows. With a secret (`nodePublishSecretRef`) it is a copy for the pod's namespace alone, of a
 * URL that the namespace may name. Throws USAGE for a secret that does not fit the URL, without showing its values.
 */
export function chooseVolumeSource(catalog: Catalog, request: VolumeRequest): VolumeSource {
  const { dataset: url, pod, secrets } = request
  if (Object.keys(secrets).length === 0) return { dataset: chooseDataset(catalog, pod.namespace, url) }
  if (!url.includes('://'))
    throw refuse(`expected dataset: to be a URL such as hf://org/model, found ${JSON.stringify(url)}`)
  requireSource(url)
  requireNameable(catalog.rules, pod.namespace, url)
  const own = readSecrets(url, secrets)
  if (!isKnownPlace(own, catalog.declared))
    throw new CsiRefusal(
      'PERMISSION_DENIED',
      `nodePublishSecretRef: secrets go to AWS, the hub and the endpoints of declared datasets alone, not to ${redactUrl(own.endpoint ?? '')}`,
    )
  const isElsewhere = 'AWS_ENDPOINT_URL' in secrets || 'HF_ENDPOINT' in secrets
  const endpoint = isElsewhere ? { endpoint: own.endpoint } : {}
  const owner = `namespace:${pod.namespace}` as const
  const name = nameForOwner(deriveDatasetName(url, endpoint), owner)
  if (findOwner(name) !== owner)
    throw refuse('kubelet names no namespace; CSIDriver needs podInfoOnMount: true')
  return { dataset: { name, source: url, include: [], exclude: [], ...endpoint, readers: [owner] }, own }
}

/** Throws USAGE for missing, unknown and malformed keys. */
function readSecrets(url: string, secrets: Readonly<Record<string, string>>): OwnAccess {
  const { scheme } = parseSourceUrl(url)
  if (scheme !== 'hf' && scheme !== 's3')
    throw refuse(`only hf:// and s3:// URLs are read with a Secret, not ${redactUrl(url)}`)
  const allowed: readonly string[] = KEYS[scheme]
  const unknown = Object.keys(secrets).find((key) => !allowed.includes(key))
  if (unknown !== undefined)
    throw refuse(
      `the Secret has ${JSON.stringify(unknown)}; for ${scheme}:// it may have ${allowed.join(', ')}`,
    )
  const find = (key: string) => {
    const text = secrets[key]?.trimEnd() // a file that became a Secret ends in a line break
    if (text === undefined || (text !== '' && isHeaderText(text))) return text
    throw refuse(`${key} of the Secret: expected printable ASCII characters`)
  }
  const get = (key: string, otherwise = key) => {
    const text = find(key) ?? find(otherwise)
    if (text !== undefined) return text
    throw refuse(`the Secret has no ${key}, which ${scheme}:// needs`)
  }
  if (scheme === 'hf')
    return { scheme, endpoint: find('HF_ENDPOINT') ?? readHubEndpoint({}), token: get('HF_TOKEN', 'token') }
  const keys = {
    accessKeyId: get('AWS_ACCESS_KEY_ID'),
    secretAccessKey: get('AWS_SECRET_ACCESS_KEY'),
    sessionToken: find('AWS_SESSION_TOKEN'),
  }
  const endpoint = find('AWS_ENDPOINT_URL')
  const place = { endpoint, region: find('AWS_REGION'), isPathStyle: endpoint !== undefined }
  return { scheme, ...place, getKeys: () => keys }
}

function refuse(why: string): DscError {
  return new DscError('USAGE', `nodePublishSecretRef: ${why}`)
}
