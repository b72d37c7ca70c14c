import type { NodeApi } from '../../cache/api/node-api.js'
import type { DoorClient } from './door-client.js'

/** The `NodeApi` that asks the node's service. `bandwidthBytesPerSecond`: at most so fast, if given. */
export function createDoorApi(
  client: DoorClient,
  { bandwidthBytesPerSecond }: { readonly bandwidthBytesPerSecond?: number | undefined },
): NodeApi {
  return {
    prepare: (request, { signal, onProgress }) =>
      client.ask('prepare', { ...request, bandwidthBytesPerSecond }, { signal, onProgress }),
    planPrepare: (request, { signal }) => client.ask('planPrepare', request, { signal }),
    planEviction: (selection, { isOwn }) => client.ask('planEviction', { selection, isOwn }),
    evict: (selection) => client.ask('evict', { selection }),
  }
}
