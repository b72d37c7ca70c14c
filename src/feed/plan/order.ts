import type { SampleGroups } from '../../samples/plan/sample-groups.js'
import { allocatePages } from '../../samples/plan/shared-pages.js'
import { type GroupOrder, shuffleGroups } from './group-order.js'
import { createRandomStream } from './random.js'

/** `shuffle` holds the whole sequence (4 bytes per sample); `feistel6` computes it; `sequential` is for evaluation. */
export const ORDER_KINDS = ['shuffle', 'feistel6', 'sequential'] as const
/** Order of an epoch's samples; `groups-16` if they are read in groups. */
export type OrderKind = (typeof ORDER_KINDS)[number] | GroupOrder

/** Above this many samples the sequence is computed instead of held: 2^26 samples would take 256 MiB per epoch. */
const MAX_HELD_ORDER = 2 ** 26

/** The samples of an order and how they are permuted, independent of ranks, nodes, memory and failures. */
export interface OrderOptions {
  /** Number of samples in the dataset, 1 to 2^40. */
  readonly sampleCount: number
  /** 0 to 2^53 − 1. */
  readonly seed: number
  /** 0 or more. */
  readonly epoch: number
  readonly kind: OrderKind
  /** For orders through groups. */
  readonly groups?: SampleGroups | undefined
}

/** S_e: the sequence in which one epoch visits the samples. */
export interface EpochOrder {
  readonly epoch: number
  readonly sampleCount: number
  /** The sample at `position` (0 to sampleCount − 1). */
  sampleAt(position: number): number
}

/** An order in the form that one thread passes to another. */
export interface OrderData extends OrderOptions {
  /** The whole sequence, if it is held. */
  readonly held?: Uint32Array | undefined
}

/** Opens an order that another thread made, or one that is computed as it is read. */
export function openOrder(data: OrderData): EpochOrder {
  return data.held ? holdOrder(data.epoch, data.held) : planOrder(data)
}

/** Default kind of order for a dataset of `sampleCount` samples. */
export function chooseOrderKind(sampleCount: number): OrderKind {
  return sampleCount > MAX_HELD_ORDER ? 'feistel6' : 'shuffle'
}

/** The order of one epoch: the same on every machine for the same options. */
export function planOrder(options: OrderOptions): EpochOrder {
  const { sampleCount, epoch } = options
  switch (options.kind) {
    case 'sequential':
      return { epoch, sampleCount, sampleAt: (position) => position }
    case 'feistel6':
      return { epoch, sampleCount, sampleAt: planFeistel(options) }
    default:
      return holdOrder(epoch, holdSamples(options))
  }
}

/** Makes the whole sequence of an epoch, to be held. */
export function holdSamples({ groups, ...options }: Omit<OrderOptions, 'kind'>): Uint32Array {
  return groups ? shuffleGroups(groups, options) : shuffleSamples(options)
}

/** An order whose whole sequence is in memory. */
function holdOrder(epoch: number, samples: Uint32Array): EpochOrder {
  return { epoch, sampleCount: samples.length, sampleAt: (position) => samples[position]! }
}

/** Fisher–Yates over 0 … sampleCount − 1, from the last place down; in memory that threads can share. */
export function shuffleSamples(options: Omit<OrderOptions, 'kind'>): Uint32Array {
  const samples = allocatePages(Uint32Array, options.sampleCount)
  for (let i = 0; i < samples.length; i++) samples[i] = i
  const random = createRandomStream(options.seed, options.epoch)
  for (let i = samples.length - 1; i > 0; i--) {
    const j = random.nextBelow(i + 1)
    const held = samples[i]!
    samples[i] = samples[j]!
    samples[j] = held
  }
  return samples
}

/** Six Feistel rounds on the smallest even number of bits that covers the samples; repeats until it lands in range. */
function planFeistel(options: OrderOptions): (position: number) => number {
  const { sampleCount } = options
  const random = createRandomStream(options.seed, options.epoch)
  const keys = Array.from({ length: 6 }, () => random.nextUint32())
  let halfBits = 1
  while (4 ** halfBits < sampleCount) halfBits++
  const base = 2 ** halfBits
  return (position) => {
    let value = position
    do {
      let left = Math.floor(value / base)
      let right = value % base
      for (const key of keys) {
        let word = Math.imul(right ^ key, 0x9e3779b1)
        word = Math.imul(word ^ (word >>> 15), 0x85ebca77)
        word = (word ^ (word >>> 13)) >>> 0
        const next = (left ^ (word % base)) >>> 0
        left = right
        right = next
      }
      value = left * base + right
    } while (value >= sampleCount)
    return value
  }
}
