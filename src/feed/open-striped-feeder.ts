import { type FeedSettings, type OpenedFeeder, openFeeder } from './open-feeder.js'
import type { MergedTable } from './samples/merge-tables.js'
import { createRangeSource, type RangeReader } from './sources/range-source.js'
import { createRemoteSource, type StorageNodePlace } from './sources/remote-source.js'
import type { StorageTls } from './storage/open-socket.js'

/** A dataset whose samples lie on several nodes, each on one of them. */
export interface StripedOptions {
  readonly merged: MergedTable
  /** Storage nodes by the placement's numbers; one without its stripe has no address. */
  readonly nodes: readonly StorageNodePlace[]
  /** Storage nodes that hold everything, asked when the sample's own node fails. */
  readonly replicas: readonly StorageNodePlace[]
  /** Where the dataset came from, read when no node can give a sample. */
  readonly reader: RangeReader
  readonly token: string | undefined
  /** How nodes are believed; undefined: connections are not encrypted. */
  readonly tls: StorageTls | undefined
}

/** Opens a feed over stripes. The ladder for a sample is its node, then replicas, then the dataset's source. */
export function openStripedFeeder(options: StripedOptions, settings: FeedSettings): OpenedFeeder {
  const { nodes, replicas, reader, token, tls } = options
  const { table, placement } = options.merged
  return openFeeder(table, settings, undefined, ({ arenaFile }) => {
    const shared = { table, token, tls, arenaFd: arenaFile.fd, nowMs: () => performance.now() }
    const origin = createRangeSource({ table, arenaFd: arenaFile.fd, reader })
    const fallback =
      replicas.length === 0
        ? origin
        : createRemoteSource({ ...shared, layout: 'full', nodes: replicas, fallback: origin })
    const stripes = createRemoteSource({ ...shared, layout: 'striped', nodes, fallback })
    return { ...stripes, placement }
  })
}
