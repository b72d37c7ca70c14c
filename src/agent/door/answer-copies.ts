import { z } from 'zod'
import type { GivenPasses } from '../../cache/surroundings.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { findOwner } from '../../model/dataset.js'
import { fields, text, texts } from '../calls/fields.js'
import { nameHolder, PASS_MS, signPass } from '../server/copy-pass.js'
import { placeLease } from './answer-staging.js'
import { type DoorCall, look, operation, requireReader } from './door-call.js'

/** The operations of a feed that reads copies of other nodes, such as stripes. */
export const COPY_OPERATIONS = {
  leaseCopy: operation(
    fields({ copyId: text, lease: z.unknown().optional() }),
    { isLease: true },
    async (call, { copyId, lease }) => {
      const { record, nowMs } = call.cache
      const copy = await findReadable(call, copyId)
      if (copy === undefined) return undefined
      const request = { copyId, purpose: 'use', lease: placeLease(call, lease) } as const
      const leaseId = await record.leaseCopy(request, nowMs())
      return leaseId === undefined ? undefined : { leaseId }
    },
  ),
  passCopies: look(fields({ copyIds: texts }), passCopies),
}

/** Gives passes for copies that the asker may read: agents of other nodes believe them, and know no users of this one. */
async function passCopies(
  call: DoorCall,
  { copyIds }: { readonly copyIds: readonly string[] },
): Promise<GivenPasses> {
  const { cache, access } = call.service
  const token = access?.token
  if (token === undefined)
    throw new DscError(
      'CONFIG_INVALID',
      'the service has no token that agents of other nodes would believe',
      {
        hint: 'set agent.tokenFile in the dsc.yaml of the services of all nodes',
      },
    )
  const passes: (string | null)[] = []
  for (const copyId of copyIds) {
    const copy = await findReadable(call, copyId)
    const pass = { copyId, by: nameHolder(call.asker.uid, cache.node), expiresAtMs: cache.nowMs() + PASS_MS }
    passes.push(copy === undefined ? null : signPass(token, pass))
  }
  return { passes, lastsMs: PASS_MS, ca: access?.ca }
}

/** Finds a ready copy on any node. Rejects with NOT_PERMITTED if the asker may not read its dataset. */
async function findReadable(call: DoorCall, copyId: string): Promise<Copy | undefined> {
  const { record, nowMs } = call.cache
  const [copy] = await record.listCopies({ copyId, states: ['ready'] }, nowMs())
  if (copy === undefined) return undefined
  await requireReader(call, copy.dataset)
  // Agents give the copies of one user to no other node.
  return findOwner(copy.dataset) === undefined ? copy : undefined
}
