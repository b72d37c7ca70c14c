import { type MixPart, planMixedOrder } from './plan/mix.js'
import { type EpochOrder, holdOrder, type OrderKind, planOrder } from './plan/order.js'
import type { ReaderPool } from './reader-pool.js'

/** The orders of the epochs in use, made off the feed's thread. */
export interface OrderBook {
  readonly kind: OrderKind
  /** The order of `epoch` if it is there; otherwise it is begun and undefined returned. */
  find(epoch: number): EpochOrder | undefined
  get(epoch: number): Promise<EpochOrder>
  forgetBefore(epoch: number): void
}

export function createOrderBook(options: {
  /** Samples that an epoch visits, each visit counted. */
  readonly positionCount: number
  readonly seed: number
  readonly kind: OrderKind
  readonly mix: readonly MixPart[] | undefined
  readonly pool: ReaderPool
}): OrderBook {
  const { positionCount: sampleCount, seed, kind, mix, pool } = options
  const ready = new Map<number, EpochOrder>()
  const begun = new Map<number, Promise<EpochOrder>>()
  const make = async (epoch: number): Promise<EpochOrder> => {
    const visits = await makeVisits(epoch)
    return mix ? planMixedOrder(visits, mix, seed) : visits
  }
  const makeVisits = async (epoch: number): Promise<EpochOrder> => {
    if (kind !== 'shuffle') return planOrder({ sampleCount, seed, epoch, kind })
    const result = await pool.run({ kind: 'shuffle', sampleCount, seed, epoch })
    if (result.kind !== 'shuffle') throw new Error('a reader thread answered another question')
    return holdOrder(epoch, result.samples)
  }
  const get = (epoch: number): Promise<EpochOrder> => {
    const held = begun.get(epoch)
    if (held) return held
    const order = make(epoch).then((made) => {
      if (begun.has(epoch)) ready.set(epoch, made)
      return made
    })
    order.catch(() => begun.delete(epoch)) // a reader that failed once may succeed when asked again
    begun.set(epoch, order)
    return order
  }
  return {
    kind,
    find(epoch) {
      const order = ready.get(epoch)
      if (!order) void get(epoch).catch(() => {})
      return order
    },
    get,
    forgetBefore(epoch) {
      for (const of of begun.keys()) if (of < epoch) begun.delete(of)
      for (const of of ready.keys()) if (of < epoch) ready.delete(of)
    },
  }
}
