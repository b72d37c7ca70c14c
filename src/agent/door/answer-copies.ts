import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { findOwner } from '../../model/dataset.js'
import { nameHolder, PASS_MS, signPass } from '../server/copy-pass.js'
import { placeLease } from './answer-staging.js'
import { type DoorCall, type DoorResult, type Operation, requireReader } from './door-call.js'
import { readText, readTexts } from './read-input.js'

/** The operations of a feed that reads copies of other nodes, such as stripes. */
export const COPY_OPERATIONS: Readonly<Record<string, Operation>> = {
  leaseCopy: async (call) => {
    const { record, nowMs } = call.service.cache
    const copy = await findReadable(call, readText(call.input, 'copyId'))
    if (copy === undefined) return { result: null }
    const request = { copyId: copy.copyId, purpose: 'use', lease: placeLease(call) } as const
    const leaseId = await record.leaseCopy(request, nowMs())
    return { result: leaseId === undefined ? null : { leaseId } }
  },
  passCopies,
}

/** Gives passes for copies that the asker may read: agents of other nodes believe them, and know no users of this one. */
async function passCopies(call: DoorCall): Promise<DoorResult> {
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
  for (const copyId of readTexts(call.input, 'copyIds')) {
    const copy = await findReadable(call, copyId)
    const pass = { copyId, by: nameHolder(call.asker.uid, cache.node), expiresAtMs: cache.nowMs() + PASS_MS }
    passes.push(copy === undefined ? null : signPass(token, pass))
  }
  return { result: { passes, lastsMs: PASS_MS, ca: access?.ca } }
}

/** Finds a ready copy on any node. Rejects with NOT_PERMITTED if the asker may not read its dataset. */
async function findReadable(call: DoorCall, copyId: string): Promise<Copy | undefined> {
  const { record, nowMs } = call.service.cache
  const [copy] = await record.listCopies({ copyId, states: ['ready'] }, nowMs())
  if (copy === undefined) return undefined
  await requireReader(call, copy.dataset)
  // Agents give the copies of one user to no other node.
  return findOwner(copy.dataset) === undefined ? copy : undefined
}
