import { DscError } from '../../failure/dsc-error.js'
import { type Dataset, deriveDatasetName, nameForOwner } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { readHubEndpoint } from '../../sources/hub-endpoint.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { type DoorCall, requireRight } from './door-call.js'
import { keepAccess } from './handed-access.js'

/**
 * Judges a source that its asker reads with credentials of their own. Returns its definition, for them alone, and the
 * call in which it can be read: no other node gives its bytes, and nothing of the service's opens it.
 */
export function openOwnSource(
  call: DoorCall,
  asked: Dataset,
  access: HandedAccess,
): { readonly dataset: Dataset; readonly call: DoorCall } {
  const { name, source, include, exclude, endpoint } = asked
  const { asker, service } = call
  requireRight(call, { kind: 'hand-over', isKnown: isKnownPlace(call, access) })
  const reaches = endpoint === undefined ? [{}] : [{}, { endpoint }]
  const names = reaches.map((reach) =>
    nameForOwner(deriveDatasetName(source, { include, exclude, ...reach }), asker.uid),
  )
  if (access.scheme !== parseSourceUrl(source).scheme || !names.includes(name))
    throw new DscError('USAGE', `expected the name of ${source} for this user, found ${name}`, {
      hint: 'dsc --version, and the version of the service, should be the same',
    })
  const dataset = { name, source, include, exclude, ...(endpoint && { endpoint }), readers: [ownParty(call)] }
  const own = keepAccess(access, call.askAccess)
  const cache = {
    ...service.cache,
    openSource: (one: Dataset) => service.cache.openSource(one, own),
    openStagingSource: undefined,
    findKept: () => undefined,
  }
  return { dataset, call: { ...call, service: { ...service, cache } } }
}

/** The user who asks, as `readers:` names them. */
function ownParty({ asker }: DoorCall): string {
  return asker.parties.find((party) => party.startsWith('user:'))!
}

/**
 * Whether credentials may be sent there: to any other server a user could have the service say what only its own
 * address, or its own user, is told.
 */
function isKnownPlace({ service }: DoorCall, { scheme, endpoint }: HandedAccess): boolean {
  if (scheme === 's3' && endpoint === undefined) return true
  const declared = (service.cache.declared ?? []).flatMap((dataset) => dataset.endpoint ?? [])
  const known = scheme === 'hf' ? [readHubEndpoint({}), ...declared] : declared
  return known.some((one) => URL.canParse(one) && one.replace(/\/+$/, '') === endpoint?.replace(/\/+$/, ''))
}
