import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import type { OrderKind } from './order.js'
import type { LastBatchRule } from './rank-sequence.js'

/**
 * Position of a training run: enough to continue with the very next sample, on any number of ranks, workers and nodes.
 * The same on every rank. A version only ever gains fields.
 */
export interface FeedState {
  readonly v: 1
  readonly dataset: string
  /** Fingerprint of all samples with their checksums; null if some were not known yet. */
  readonly fingerprint: string | null
  /** Digest of the dataset's version and the samples' names and lengths; null if samples belong to no version. */
  readonly listing?: string | null
  /** Number of samples in the dataset. */
  readonly n: number
  readonly order: OrderKind
  readonly seed: number
  readonly epoch: number
  /** Positions of the epoch that all ranks together have received: step · B. */
  readonly position: number
  /** Samples in a batch of all ranks. */
  readonly B: number
  readonly last: LastBatchRule
  /** Maps each part of a mix to how often an epoch visits its samples; null without a mix. */
  readonly mix: Readonly<Record<string, number>> | null
  readonly skipped: readonly (readonly [epoch: number, sample: number])[]
}

/** The fields in which a state must match the feed. */
export type FeedIdentity = Pick<
  FeedState,
  'fingerprint' | 'listing' | 'n' | 'order' | 'seed' | 'last' | 'mix'
>

/** Chooses how to compare samples: by fingerprint, or by listing if either side did not know all checksums. */
export function chooseIdentity(
  a: { readonly fingerprint?: string | null | undefined },
  b: { readonly fingerprint?: string | null | undefined },
): 'fingerprint' | 'listing' {
  return a.fingerprint && b.fingerprint ? 'fingerprint' : 'listing'
}

const format = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Returns the epoch and step of `state` for batches of `globalBatch`; the end of an epoch is the start of the next. */
export function planResume(
  state: FeedState,
  identity: FeedIdentity,
  { globalBatch, stepsPerEpoch }: { readonly globalBatch: number; readonly stepsPerEpoch: number },
): { epoch: number; step: number } {
  for (const name of [chooseIdentity(state, identity), 'n', 'order', 'seed', 'last', 'mix'] as const)
    if (JSON.stringify(state[name] ?? null) !== JSON.stringify(identity[name] ?? null))
      throw new DscError(
        'FEED_STATE_MISMATCH',
        `the state has ${name} ${format(state[name])}, this feed has ${format(identity[name])}`,
        {
          hint: 'resume with the data and settings that the state was taken with',
        },
      )
  if (state.position % globalBatch !== 0)
    throw new DscError(
      'FEED_STATE_MISMATCH',
      `position ${state.position} is no multiple of the global batch of ${formatCount(globalBatch, 'sample')}`,
      { hint: `resume with a global batch that divides ${state.position}, such as ${state.B}` },
    )
  const step = state.position / globalBatch
  return step >= stepsPerEpoch ? { epoch: state.epoch + 1, step: 0 } : { epoch: state.epoch, step }
}
