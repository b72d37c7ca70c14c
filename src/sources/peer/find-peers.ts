import type { CopyUse } from '../../model/copy.js'
import { type Dataset, isSameDefinition } from '../../model/dataset.js'
import { agentUrls } from '../../model/node.js'
import { rankPeers } from '../../policy/placement.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { findDamagedCopies } from '../damaged-copies.js'

/** A ready copy of the dataset on another node with a running agent. */
export interface PeerCopy {
  readonly node: string
  readonly url: string
  readonly copy: CopyUse
  readonly transfers: number
}

/** Peers asked in turn; more would only delay the fallback to the source. */
export const MAX_PEERS = 4

/** The dataset whose copies to find, and the node that asks. */
export interface PeerSearch {
  readonly record: RecordStore
  readonly node: string
  readonly dataset: Dataset
}

/** Finds copies of this version, including stripes: the manifest of each names all objects. */
export async function findListers(search: PeerSearch, version: string): Promise<readonly PeerCopy[]> {
  return (await findHolders(search, (copy) => copy.version === version)).slice(0, MAX_PEERS)
}

/** Finds whole copies that other nodes can serve, the least loaded first. */
export async function findPeers(search: PeerSearch): Promise<readonly PeerCopy[]> {
  return findHolders(search, (copy) => !copy.stripe)
}

async function findHolders(
  { record, node, dataset }: PeerSearch,
  isWanted: (copy: CopyUse) => boolean,
): Promise<readonly PeerCopy[]> {
  const nowMs = record.nowMs()
  const damaged = await findDamagedCopies(record, dataset.name)
  const copies = (await record.listCopies({ dataset: dataset.name, states: ['ready'] }, nowMs)).filter(
    (copy) =>
      copy.node !== node &&
      !damaged.has(copy.copyId) &&
      isWanted(copy) &&
      copy.source &&
      isSameDefinition(copy.source, dataset),
  )
  if (copies.length === 0) return []
  const agents = agentUrls(await record.listNodes(), nowMs)
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
  return rankPeers(peers, node)
}
