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
  #outFreeUs = 0
  #inFreeUs = 0

  constructor(device: MemoryProfile['device'], faults: CopyFaults) {
    this.#device = device
    this.#faults = faults
  }

  /** Queues a copy to the host that may start at `readyUs`; returns when it ends. */
  copyOut(copied: Copied, readyUs: number): number {
    const fromUs = Math.max(readyUs, this.#outFreeUs)
    this.#outFreeUs =
      fromUs +
      this.#lastsUs(copied.bytes, { ownGBs: this.#device.d2hGBs, isOtherBusy: this.#inFreeUs > fromUs })
    this.times.push({
      direction: 'out',
      storage: copied.storage,
      bytes: copied.bytes,
      fromUs,
      toUs: this.#outFreeUs,
    })
    return this.#outFreeUs
  }

  /** Queues a copy to the device that may start at `readyUs`; returns when it ends. */
  copyIn(copied: Copied, readyUs: number): number {
    const fromUs = Math.max(readyUs, this.#inFreeUs)
    this.#inFreeUs =
      fromUs +
      this.#lastsUs(copied.bytes, { ownGBs: this.#device.h2dGBs, isOtherBusy: this.#outFreeUs > fromUs })
    this.times.push({
      direction: 'in',
      storage: copied.storage,
      bytes: copied.bytes,
      fromUs,
      toUs: this.#inFreeUs,
    })
    return this.#inFreeUs
  }

  #lastsUs(
    bytes: number,
    { ownGBs, isOtherBusy }: { readonly ownGBs: number; readonly isOtherBusy: boolean },
  ): number {
    const { bothGBs, copyLatencyUs } = this.#device
    const gbs = isOtherBusy ? Math.min(ownGBs, bothGBs / 2) : ownGBs
    const tries = 1 + (this.#faults.copyFailures?.(this.times.length) ?? 0)
    const slowdown = this.#faults.copySlowdown?.(this.times.length) ?? 1
    return tries * slowdown * copyUs(bytes, gbs, copyLatencyUs)
  }
}
