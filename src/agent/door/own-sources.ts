import type { Cache } from '../../cache/cache.js'
import { readWithOwn } from '../../cache/read-with-own.js'
import { DscError } from '../../failure/dsc-error.js'
import { type Dataset, deriveDatasetName, nameForOwner } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { isKnownPlace } from '../../sources/known-place.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { type DoorCall, requireRight } from './door-call.js'
import { keepAccess } from './handed-access.js'

/**
 * Judges a source that its asker reads with credentials of their own. Returns its definition, for them alone, and the
 * cache through which it can be read: no other node gives its bytes, and nothing of the service's opens it.
 */
export function openOwnSource(
  call: DoorCall,
  asked: Dataset,
  access: HandedAccess,
): { readonly dataset: Dataset; readonly cache: Cache } {
  const { name, source, include, exclude, endpoint } = asked
  const { asker, service } = call
  requireRight(call, { kind: 'hand-over', isKnown: isKnownPlace(access, service.cache.declared) })
  const reaches = endpoint === undefined ? [{}] : [{}, { endpoint }]
  const names = reaches.map((reach) =>
    nameForOwner(deriveDatasetName(source, { include, exclude, ...reach }), asker.uid),
  )
  if (access.scheme !== parseSourceUrl(source).scheme || !names.includes(name))
    throw new DscError('USAGE', `expected the name of ${source} for this user, found ${name}`, {
      hint: 'dsc --version, and the version of the service, should be the same',
    })
  const dataset = { name, source, include, exclude, ...(endpoint && { endpoint }), readers: [ownParty(call)] }
  return { dataset, cache: readWithOwn(service.cache, keepAccess(access, call.askAccess)) }
}

/** The user who asks, as `readers:` names them. */
function ownParty({ asker }: DoorCall): string {
  return asker.parties.find((party) => party.startsWith('user:'))!
}
