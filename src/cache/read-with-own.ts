import type { OwnAccess } from '../sources/own-access.js'
import type { Cache } from './cache.js'

/** The cache, for a source that is read with handed-over credentials alone: no other node and no hub cache gives its bytes. */
export function readWithOwn(cache: Cache, own: OwnAccess): Cache {
  return {
    ...cache,
    openSource: (dataset) => cache.openSource(dataset, own),
    openStagingSource: undefined,
    findKept: () => undefined,
  }
}
