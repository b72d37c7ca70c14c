import type { Extent } from '../arena/arena-extents.js'
import type { RankItem } from '../epochs/rank-items.js'

/** Where one item of the rank's sequence stands. */
export interface Slot extends RankItem {
  /**
   * waiting: nobody has been asked for it · inflight · ready · leased · failed: no source could give it ·
   * dropped: nobody wants it any more.
   */
  state: 'waiting' | 'inflight' | 'ready' | 'leased' | 'failed' | 'dropped'
  /** A client waits for this item, or has it. */
  isWanted: boolean
  /** Counted in the ready-and-inflight number of its list. */
  isAhead: boolean
  extent: Extent | undefined
}

/** The slot of an item that nothing has been done for. */
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

/** What a client's item turned out to be. `blocked`: a miss without room; ask again after a release. */
export interface Want {
  readonly slot: Slot
  readonly outcome: 'hit' | 'kept' | 'miss' | 'blocked'
  readonly request?: SampleRequest
}

/** A sample to carry from one extent to another before the first is given up. */
export interface CarryCopy {
  readonly from: Extent
  readonly to: Extent
  readonly slot: Slot
}
