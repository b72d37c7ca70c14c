import type { NodeApi } from '../../cache/api/node-api.js'
import type { GivenPasses } from '../../cache/surroundings.js'
import type { Config } from '../../config/config.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { ClusterApi } from '../calls/cluster-api.js'
import { createDoorApi, type FindOwnAccess } from './door-api.js'
import { DoorClient } from './door-client.js'
import { createDoorCluster } from './door-cluster.js'
import { openDoorRecord } from './door-record.js'

/** The service behind a door, which has said what it is. */
export interface KnownService {
  readonly openRecord: () => RecordStore
  readonly createApi: (limits: { readonly bandwidthBytesPerSecond?: number | undefined }) => NodeApi
  readonly createCluster: () => ClusterApi
  readonly askPasses: (copyIds: readonly string[]) => Promise<GivenPasses>
  /** The configuration as the service has it, where it decides. */
  readonly seeConfig: (own: Config) => Config
}

/** Asks the service at this socket what it is. Waits for one that is away, and tells `onAway`. */
export async function knock(
  path: string,
  tell: {
    readonly onAway: ((sentence: string) => void) | undefined
    readonly signal: AbortSignal | undefined
    readonly findOwnAccess: FindOwnAccess
  },
): Promise<KnownService> {
  const client = new DoorClient(path, { onAway: (sentence) => tell.onAway?.(sentence), signal: tell.signal })
  const { nowMs, node, cacheRoot: root, policy, datasets, uid } = await client.greet()
  return {
    openRecord: () => openDoorRecord(client, nowMs),
    createApi: (limits) => createDoorApi(client, { ...limits, uid, findOwnAccess: tell.findOwnAccess }),
    createCluster: () => createDoorCluster(client),
    askPasses: (copyIds) => client.ask('passCopies', { copyIds }),
    seeConfig: (own) => ({ ...own, node, cache: { root, policy }, datasets, uidAtDoor: uid }),
  }
}
