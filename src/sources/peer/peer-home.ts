import type { Dataset } from '../../model/dataset.js'
import type { Fetcher } from '../source.js'
import type { PeerAccess } from './peer-connection.js'
import type { Providers } from './plan-providers.js'

/** How a thread that reads from peers is set up. Plain data, so that it can be passed to a thread. */
export interface PeerLocation {
  readonly node: string
  readonly dataset: Pick<Dataset, 'name' | 'source'>
  readonly access: PeerAccess
  /** Whether a node's word about an object replaces the source's checksum (`cluster.trustNodes`). */
  readonly trustsNodes: boolean
}

/** The services that only the staging itself can provide to its readers. */
export interface PeerHome {
  /** The nodes that this one may ask right now. */
  readonly findProviders: () => Providers
  /** Keeps a peer's copy while it is read. False: it is no longer ready. */
  readonly take: (copyId: string) => Promise<boolean>
  /** Called when a peer's bytes differ from what the peer itself says they are. */
  readonly onDamage: (node: string, damage: DonorDamage) => Promise<void>
  readonly openOriginFetcher: () => Promise<Fetcher>
}

/** A peer's bytes of an object that turned out to be wrong. */
export interface DonorDamage {
  readonly key: string
  readonly offset: number
  readonly expected: string
  readonly found: string
}
