import type { Dataset } from '../../model/dataset.js'
import type { LeaseRequest } from '../../model/lease.js'
import type { EvictionPlan } from '../../policy/plan-eviction.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { Cache } from '../cache.js'
import type { Evicted, EvictionSelection } from '../eviction/evict-copies.js'
import type { PreparePlan } from '../prepare/plan-prepare.js'
import type { Prepared, PrepareProgress, PrepareRequest } from '../prepare/prepare-dataset.js'
import type { Surroundings } from '../surroundings.js'
import type { Undone } from '../upkeep/describe-deed.js'
import type { PastDeed } from '../upkeep/past-deeds.js'
import type { UndoRequest } from '../upkeep/undo-deed.js'
import { createOwnUpkeep, type UpkeepApi } from './upkeep-api.js'

/** A wish to know what `prepare` would do. */
export interface PreparePlanRequest {
  readonly dataset: Dataset
  readonly isRefresh: boolean
  readonly isPrefetch: boolean
  /** The parties that it would be for; a service sees for itself who asks. */
  readonly parties: readonly string[]
}

/** A copy that stays as long as this lease, whose holder is as the service found it. */
export interface Leased extends Prepared {
  readonly lease: LeaseRequest
}

/**
 * The operations of commands on this node: by the cache in this process, or by the node's service through its door.
 * Both resolve and reject with the same. Commands read, lease and lock through the record instead.
 */
export interface NodeApi extends UpkeepApi {
  prepare(
    request: Omit<PrepareRequest, 'stripe' | 'version' | 'sharedWith'>,
    options: {
      readonly signal: AbortSignal
      readonly onProgress: (progress: PrepareProgress) => void
      /** Given by a caller that reads during the download: resolves with how long it waited for its first sample, in ms. */
      readonly firstRead?: Promise<number> | undefined
    },
  ): Promise<Leased>
  planPrepare(request: PreparePlanRequest, options: { readonly signal: AbortSignal }): Promise<PreparePlan>
  /** `isOwn`: the caller is about to evict, so that a refusal gets into the history. */
  planEviction(selection: EvictionSelection, options: { readonly isOwn: boolean }): Promise<EvictionPlan>
  /**
   * Evicts the part of the selection that is still permitted, and resolves with it. `by`: the user who can take it
   * back; absent: the files are deleted at once.
   */
  evict(selection: EvictionSelection, options: { readonly by?: string | undefined }): Promise<Evicted>
  /** Users' deeds of the last day that can be taken back, newest first. */
  listDeeds(): Promise<readonly PastDeed[]>
  /** Takes back the deed of this id, or the last one of `by` that can be. Rejects with UNDO_IMPOSSIBLE if none can be. */
  undo(request: UndoRequest): Promise<Undone>
}

/** Surroundings of what may change this node's cache. */
export interface NodeSurroundings extends Surroundings {
  /** Opens what this node does for its user: by the cache in this process, or by the node's service. */
  readonly openApi: (record?: RecordStore) => Promise<NodeApi>
}

/** The cache in this process. What it needs is loaded when it is asked for. */
export function createOwnApi(cache: Cache): NodeApi {
  return {
    ...createOwnUpkeep(cache),
    prepare: async (request, options) => {
      const { prepareDataset } = await import('../prepare/prepare-dataset.js')
      return { ...(await prepareDataset(cache, request, options)), lease: request.lease }
    },
    planPrepare: async ({ dataset, ...request }, options) =>
      (await import('../prepare/plan-prepare.js')).planPrepare(cache, dataset, { ...request, ...options }),
    planEviction: async (selection, { isOwn }) =>
      isOwn
        ? (await import('../eviction/refuse-eviction.js')).planOwnEviction(cache, selection, null)
        : (await import('../eviction/evict-copies.js')).planEvictionOf(cache, selection),
    evict: async (selection, { by }) =>
      (await import('../eviction/evict-copies.js')).evictCopies(cache, selection, by),
    listDeeds: async () => (await import('../upkeep/undo-deed.js')).listUndoable(cache),
    undo: async (request) => (await import('../upkeep/undo-deed.js')).undoDeed(cache, request),
  }
}
