import type { MergedTable } from '../../samples/merge-tables.js'
import type { StorageTls } from '../storage/open-socket.js'
import { type RangeReader, RangeSource } from './range-source.js'
import { RemoteSource } from './remote-source.js'
import type { SampleSupply } from './sample-supply.js'
import type { StorageNodePlace } from './storage-node.js'

/** An agent that is restarted, or upgraded, is back within this time, in ms. */
const PATIENCE_MS = 60_000

/** A dataset whose samples lie on several nodes, each on one of them. */
export interface StripedOptions {
  readonly merged: MergedTable
  /** Storage nodes by the placement's numbers; a node without its stripe has no address. */
  readonly nodes: readonly StorageNodePlace[]
  /** Storage nodes that hold everything, asked when the sample's own node fails. */
  readonly replicas: readonly StorageNodePlace[]
  /** The dataset's source, read when no node can deliver a sample. */
  readonly reader: RangeReader
  /** How to trust nodes; undefined: connections are not encrypted. */
  readonly tls: StorageTls | undefined
  /** Called when a node stops answering. */
  readonly onNodeLost?: ((message: string) => void) | undefined
}

/** Samples of stripes. The ladder for a sample is its node, then replicas, then the dataset's source. */
export function stripeSupply(options: StripedOptions): SampleSupply {
  const { nodes, replicas, reader, tls } = options
  const { table, placement } = options.merged
  return {
    table,
    folder: undefined,
    makeSource({ arenaFile }) {
      const shared = { table, token: undefined, tls, arenaFd: arenaFile.fd, nowMs: () => performance.now() }
      const origin = new RangeSource({ table, arenaFd: arenaFile.fd, reader })
      const fallback =
        replicas.length === 0
          ? origin
          : new RemoteSource({ ...shared, layout: 'full', nodes: replicas, fallback: origin })
      return new RemoteSource({
        ...shared,
        layout: 'striped',
        placement,
        nodes,
        fallback,
        patienceMs: PATIENCE_MS,
        onNodeLost: options.onNodeLost,
      })
    },
  }
}
