import type { Extent } from '../arena/arena-extents.js'
import type { RankItem } from '../epochs/rank-items.js'

/** State of one item of the rank's sequence. */
export interface Slot extends RankItem {
  /**
   * waiting: not requested yet · inflight · ready · leased · failed: no source could deliver it · dropped: no longer
   * wanted.
   */
  state: 'waiting' | 'inflight' | 'ready' | 'leased' | 'failed' | 'dropped'
  /** Whether a client waits for this item, or has it. */
  isWanted: boolean
  /** Whether it counts among its list's samples that are ready or on their way. */
  isAhead: boolean
  extent: Extent | undefined
}

/** Makes the slot of an item in its initial state. */
export function openSlot(item: RankItem): Slot {
  const { serial, epoch, position, sample, node } = item
  return {
    serial,
    epoch,
    position,
    sample,
    node,
    state: 'waiting',
    isWanted: false,
    isAhead: false,
    extent: undefined,
  }
}

/** One message to one storage node: the missed sample, if any, first. */
export interface SampleRequest {
  readonly node: number
  readonly slots: readonly Slot[]
  readonly isMiss: boolean
}

/** Result for an item that a client wants. `blocked`: a miss without room; retry after a release. */
export interface Want {
  readonly slot: Slot
  readonly outcome: 'hit' | 'kept' | 'miss' | 'blocked'
  readonly request?: SampleRequest
}

/** A sample to copy from one extent to another before the first is given up. */
export interface CarryCopy {
  readonly from: Extent
  readonly to: Extent
  readonly slot: Slot
}
