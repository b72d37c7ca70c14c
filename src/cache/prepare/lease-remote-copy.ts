import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { isSameDefinition } from '../../model/dataset.js'
import type { LeaseRequest } from '../../model/lease.js'
import { agentUrls } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { formatRemoteUrl } from '../../sources/peer-wire.js'

/** A copy on another node that the task reads over the network. */
export interface RemoteUse {
  readonly copy: Copy
  readonly leaseId: string
  /** URL at which the node's agent serves it. */
  readonly url: string
}

/**
 * Seed step 4: gives the task a lease on a ready copy of another node, to read it from there. The lease counts as a
 * reference and sets the last task, as on the task's own node. Undefined if no node with a live agent has one.
 */
export async function leaseRemoteCopy(
  record: RecordStore,
  request: { readonly node: string; readonly dataset: Dataset; readonly lease: LeaseRequest },
): Promise<RemoteUse | undefined> {
  const { node, dataset, lease } = request
  const nowMs = record.nowMs()
  const agents = agentUrls(await record.listNodes(), nowMs)
  const copies = await record.listCopies({ dataset: dataset.name, states: ['ready'] }, nowMs)
  const candidates = copies
    .filter((copy) => copy.node !== node && !copy.stripe && agents.has(copy.node))
    .filter((copy) => copy.source === null || isSameDefinition(copy.source, dataset))
    .sort((a, b) => a.referenceCount - b.referenceCount || (a.node < b.node ? -1 : 1))
  for (const copy of candidates) {
    const leaseId = await record.leaseCopy({ copyId: copy.copyId, purpose: 'use', lease }, nowMs)
    if (leaseId !== undefined) {
      return { copy, leaseId, url: `${agents.get(copy.node)}${formatRemoteUrl(dataset.name)}` }
    }
  }
  return undefined
}
