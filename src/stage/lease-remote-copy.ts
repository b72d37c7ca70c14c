import type { Copy } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import { isSameDefinition } from '../model/dataset.js'
import type { LeaseRequest } from '../model/lease.js'
import { isAgentAlive } from '../model/node.js'
import type { RecordStore } from '../records/record-store.js'
import { formatRemoteUrl } from './peer-wire.js'

/** A copy on another node that the task reads from there. */
export interface RemoteUse {
  readonly copy: Copy
  readonly leaseId: string
  /** Where the node's agent serves it. */
  readonly url: string
}

/**
 * Seed step 4: gives the task a lease on a ready copy of another node, to be read from there; it counts as a
 * reference and sets the last task, as on the own node. Undefined when no node with a live agent has one.
 */
export async function leaseRemoteCopy(
  record: RecordStore,
  node: string,
  dataset: Dataset,
  lease: LeaseRequest,
): Promise<RemoteUse | undefined> {
  const nowMs = record.nowMs()
  const agents = new Map(
    (await record.listNodes())
      .filter((entry) => isAgentAlive(entry, nowMs))
      .map((entry) => [entry.node, entry.agent!.url]),
  )
  const copies = await record.listCopies({ dataset: dataset.name, states: ['ready'] }, nowMs)
  const candidates = copies
    .filter((copy) => copy.node !== node && !copy.stripe && agents.has(copy.node))
    .filter((copy) => copy.source === null || isSameDefinition(copy.source, dataset))
    .sort((a, b) => a.referenceCount - b.referenceCount || (a.node < b.node ? -1 : 1))
  for (const copy of candidates) {
    const leaseId = await record.leaseCopy(copy.copyId, 'use', lease, nowMs)
    if (leaseId !== undefined) {
      return { copy, leaseId, url: `${agents.get(copy.node)}${formatRemoteUrl(dataset.name)}` }
    }
  }
  return undefined
}
