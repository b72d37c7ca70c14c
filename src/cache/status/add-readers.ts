import type { NodeEntry } from '../../model/node.js'
import type { TransferStatus } from './compose-status.js'

/** Asks this node's stagers who reads the copies that they stage. */
export async function addReaders(
  transfers: readonly TransferStatus[],
  { node, cacheRoot }: Pick<NodeEntry, 'node' | 'cacheRoot'>,
): Promise<readonly TransferStatus[]> {
  const staged = transfers.filter(
    (transfer) => transfer.node === node && transfer.state === 'staging' && transfer.stager !== null,
  )
  if (staged.length === 0) return transfers
  const { describeArrivals } = await import('../arrivals/describe-arrivals.js')
  const readers = await describeArrivals(cacheRoot, staged)
  return transfers.map((transfer) => {
    const found = readers.get(transfer.copyId)
    return found ? { ...transfer, readers: found } : transfer
  })
}
