import { allocatePages } from '../../samples/plan/shared-pages.js'
import { type AssignmentOptions, planItemPositions } from './assignment.js'
import type { EpochOrder } from './order.js'

/** S_next_prefix of seed 001: the first samples of an epoch, as many as there is room to keep. */
export interface Prefix {
  /** One bit per sample, in memory that threads share. */
  readonly bits: Uint32Array
  readonly size: number
}

/** The samples that may be kept for one rank. */
export interface PrefixShare {
  readonly assignment: AssignmentOptions
  readonly roomBytes: number
}

interface PrefixOptions {
  readonly order: EpochOrder
  /** Number of samples in the dataset. */
  readonly sampleCount: number
  readonly shares: readonly PrefixShare[]
  /** Bytes that a sample takes in the arena. */
  readonly extentBytesOf: (sample: number) => number
}

/** Plans the first samples that the ranks read in the epoch of `order`, as many for each as its room holds. */
export function planPrefix({ order, sampleCount, shares, extentBytesOf }: PrefixOptions): Prefix {
  const prefix = { bits: allocatePages(Uint32Array, Math.ceil(sampleCount / 32)), size: 0 }
  for (const { assignment, roomBytes } of shares) {
    const positionOf = planItemPositions(assignment)
    const { itemsPerEpoch, options } = assignment.sequence
    let bytesLeft = roomBytes
    for (let item = 0; item < itemsPerEpoch; item++) {
      const sample = order.sampleAt(positionOf(order, item) % options.sampleCount)
      bytesLeft -= extentBytesOf(sample)
      if (bytesLeft < 0) break
      add(prefix, sample)
    }
  }
  return prefix
}

/** Whether the prefix has the sample. */
export function isInPrefix({ bits }: Prefix, sample: number): boolean {
  return (bits[sample >>> 5]! & (1 << (sample & 31))) !== 0
}

function add(prefix: { readonly bits: Uint32Array; size: number }, sample: number): void {
  if (isInPrefix(prefix, sample)) return
  prefix.bits[sample >>> 5]! |= 1 << (sample & 31)
  prefix.size++
}
