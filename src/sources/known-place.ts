import type { Dataset } from '../model/dataset.js'
import { readHubEndpoint } from './hub-endpoint.js'
import type { HandedAccess } from './own-access.js'

/**
 * Whether handed-over credentials may be sent there: to AWS, the hub, or an endpoint of a declared dataset. To any other
 * server their owner could have the service say what only its own address, or its own user, is told.
 */
export function isKnownPlace(
  { scheme, endpoint }: Pick<HandedAccess, 'scheme' | 'endpoint'>,
  declared: readonly Dataset[] = [],
): boolean {
  if (scheme === 's3' && endpoint === undefined) return true
  const endpoints = declared.flatMap((dataset) => dataset.endpoint ?? [])
  const known = scheme === 'hf' ? [readHubEndpoint({}), ...endpoints] : endpoints
  return known.some((one) => URL.canParse(one) && one.replace(/\/+$/, '') === endpoint?.replace(/\/+$/, ''))
}
