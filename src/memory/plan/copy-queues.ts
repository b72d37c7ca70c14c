import type { MemoryProfile } from '../step/profile.js'
import { copyUs } from './candidates.js'

/** Faults to inject into copies. Every function gets a number that is unique per copy of the step. */
export interface CopyFaults {
  /** How many times longer a copy takes; default 1. */
  readonly copySlowdown?: ((copy: number) => number) | undefined
  /** How often a copy fails and is repeated before it succeeds; default 0. */
  readonly copyFailures?: ((copy: number) => number) | undefined
}

/** One copy of the simulated step. */
export interface CopyTime {
  readonly direction: 'out' | 'in'
  readonly storage: number
  readonly bytes: number
  readonly fromUs: number
  readonly toUs: number
}

/** A storage to copy. */
type Copied = Pick<CopyTime, 'storage' | 'bytes'>

/** One copy queue in each direction; while both are busy they share the link. */
export class CopyQueues {
  /** Times of all copies so far, in the order in which they were started. */
  readonly times: CopyTime[] = []
  readonly #device: MemoryProfile['device']
  readonly #faults: CopyFaults
  /** When each queue is idle again. */
  readonly #freeUs = { out: 0, in: 0 }

  constructor(device: MemoryProfile['device'], faults: CopyFaults) {
    this.#device = device
    this.#faults = faults
  }

  /** Queues a copy to the host (out) or to the device (in) that may start at `readyUs`; returns when it ends. */
  copy(direction: CopyTime['direction'], { storage, bytes }: Copied, readyUs: number): number {
    const fromUs = Math.max(readyUs, this.#freeUs[direction])
    const isOtherBusy = this.#freeUs[direction === 'out' ? 'in' : 'out'] > fromUs
    const toUs = fromUs + this.#lastsUs(direction, bytes, { isOtherBusy })
    this.#freeUs[direction] = toUs
    this.times.push({ direction, storage, bytes, fromUs, toUs })
    return toUs
  }

  #lastsUs(
    direction: CopyTime['direction'],
    bytes: number,
    { isOtherBusy }: { readonly isOtherBusy: boolean },
  ): number {
    const { d2hGBs, h2dGBs, bothGBs, copyLatencyUs } = this.#device
    const ownGBs = direction === 'out' ? d2hGBs : h2dGBs
    const gbs = isOtherBusy ? Math.min(ownGBs, bothGBs / 2) : ownGBs
    const tries = 1 + (this.#faults.copyFailures?.(this.times.length) ?? 0)
    const slowdown = this.#faults.copySlowdown?.(this.times.length) ?? 1
    return tries * slowdown * copyUs(bytes, gbs, copyLatencyUs)
  }
}
