import type { SampleGroups } from '../../samples/plan/sample-groups.js'
import { type MixPart, openMixedOrder } from '../plan/mix.js'
import type { EpochOrder, OrderData, OrderKind } from '../plan/order.js'
import type { ReaderPool } from '../threads/reader-pool.js'

/** Source of orders. */
export interface EpochOrders {
  /** Returns the order of `epoch` if it is ready; otherwise begins it and returns undefined. */
  find(epoch: number): EpochOrder | undefined
  /** Returns the order of `epoch`; makes it if needed. */
  get(epoch: number): Promise<EpochOrder>
}

interface OrderBookOptions {
  /** Number of samples that an epoch visits, counting every visit. */
  readonly positionCount: number
  readonly seed: number
  readonly kind: OrderKind
  /** For orders through groups. */
  readonly groups?: SampleGroups | undefined
  readonly mix: readonly MixPart[] | undefined
  readonly pool: ReaderPool
}

interface HeldOrder {
  readonly order: EpochOrder
  /** The order of the visits, which a mix maps to samples. */
  readonly data: OrderData
}

/** The orders of the epochs in use, made off the feed's thread. */
export class OrderBook implements EpochOrders {
  readonly #options: OrderBookOptions
  readonly #ready = new Map<number, EpochOrder>()
  readonly #begun = new Map<number, Promise<HeldOrder>>()

  constructor(options: OrderBookOptions) {
    this.#options = options
  }

  find(epoch: number): EpochOrder | undefined {
    const order = this.#ready.get(epoch)
    if (!order) void this.#hold(epoch).catch(() => {})
    return order
  }

  async get(epoch: number): Promise<EpochOrder> {
    return (await this.#hold(epoch)).order
  }

  /** The order of `epoch` in a form that another thread can open. */
  async dataOf(
    epoch: number,
  ): Promise<{ readonly visits: OrderData; readonly mix: OrderBookOptions['mix'] }> {
    return { visits: (await this.#hold(epoch)).data, mix: this.#options.mix }
  }

  forgetBefore(epoch: number): void {
    for (const old of this.#begun.keys()) if (old < epoch) this.#begun.delete(old)
    for (const old of this.#ready.keys()) if (old < epoch) this.#ready.delete(old)
  }

  #hold(epoch: number): Promise<HeldOrder> {
    const held = this.#begun.get(epoch)
    if (held) return held
    const begun = this.#make(epoch).then((made) => {
      if (this.#begun.has(epoch)) this.#ready.set(epoch, made.order)
      return made
    })
    begun.catch(() => this.#begun.delete(epoch)) // a reader that failed once may succeed when asked again
    this.#begun.set(epoch, begun)
    return begun
  }

  async #make(epoch: number): Promise<HeldOrder> {
    const { positionCount, seed, kind, groups, mix, pool } = this.#options
    const options = { sampleCount: positionCount, seed, epoch }
    if (kind === 'feistel6' || kind === 'sequential') return hold({ ...options, kind }, mix)
    const result = await pool.run({ kind: 'shuffle', ...options, groups })
    if (result.kind !== 'shuffle') throw new Error('a reader thread answered another question')
    return hold({ ...options, kind, held: result.samples }, mix)
  }
}

function hold(data: OrderData, mix: OrderBookOptions['mix']): HeldOrder {
  return { data, order: openMixedOrder(data, mix) }
}
