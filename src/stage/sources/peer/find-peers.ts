import type { CopyUse } from '../../../model/copy.js'
import { type Dataset, isSameDefinition } from '../../../model/dataset.js'
import { isAgentAlive } from '../../../model/node.js'
import { rankPeers } from '../../../policy/placement.js'
import type { RecordStore } from '../../../records/record-store.js'

/** A ready copy of the dataset on another node whose agent answers. */
export interface PeerCopy {
  readonly node: string
  readonly url: string
  readonly copy: CopyUse
  readonly transfers: number
}

/** Asked in turn; more would only delay falling back to the source. */
const MOST_PEERS = 4

/** Finds copies of this version, stripes among them: the manifest of each names all objects. */
export async function findListers(
  record: RecordStore,
  node: string,
  dataset: Dataset,
  version: string,
): Promise<readonly PeerCopy[]> {
  return findHolders(record, node, dataset, (copy) => copy.version === version)
}

/** Finds whole copies that other nodes can serve, the least loaded first. */
export async function findPeers(
  record: RecordStore,
  node: string,
  dataset: Dataset,
): Promise<readonly PeerCopy[]> {
  return findHolders(record, node, dataset, (copy) => !copy.stripe)
}

async function findHolders(
  record: RecordStore,
  node: string,
  dataset: Dataset,
  isWanted: (copy: CopyUse) => boolean,
): Promise<readonly PeerCopy[]> {
  const nowMs = record.nowMs()
  const copies = (await record.listCopies({ dataset: dataset.name, states: ['ready'] }, nowMs)).filter(
    (copy) => copy.node !== node && isWanted(copy) && copy.source && isSameDefinition(copy.source, dataset),
  )
  if (copies.length === 0) return []
  const agents = new Map(
    (await record.listNodes())
      .filter((entry) => isAgentAlive(entry, nowMs))
      .map((entry) => [entry.node, entry.agent!.url]),
  )
  const leases = await record.listLeases({ dataset: dataset.name })
  const peers = copies.flatMap((copy) => {
    const url = agents.get(copy.node)
    if (url === undefined) return []
    const transfers = leases.filter(
      ({ copyId, purpose, expiresAtMs }) =>
        copyId === copy.copyId && purpose === 'transfer' && (expiresAtMs ?? nowMs + 1) > nowMs,
    )
    return [{ node: copy.node, url, copy, transfers: transfers.length }]
  })
  return rankPeers(peers, node).slice(0, MOST_PEERS)
}
