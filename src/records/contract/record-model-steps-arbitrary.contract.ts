import fc from 'fast-check'
import type { LeaseHolder, LeaseRequest } from '../../model/lease.js'

/** One step of a random history. `pick` chooses among the existing items, modulo their number. */
export type Step = StepAction & {
  readonly client: 0 | 1
  /** Whether to compare both records in full after it, and not only the answers; always after the last. */
  readonly isCompared: boolean
  /** Time since the previous step, ms; negative when the clock is set back. */
  readonly afterMs: number
}

/** Relative: `ttlMs` from the step's time, null = without expiry. */
export interface StepLease extends Omit<LeaseRequest, 'expiresAtMs'> {
  readonly ttlMs: number | null
}

type Place = { readonly dataset: string; readonly node: string }
type Pick = { readonly pick: number }

export type StepAction =
  | ({
      readonly kind: 'join' | 'lease-ready'
      readonly lease: StepLease
      readonly isRefresh: boolean
    } & Place)
  | ({ readonly kind: 'lease-copy'; readonly lease: StepLease; readonly purpose: 'use' | 'transfer' } & Pick)
  | ({ readonly kind: 'admit' | 'mark-ready'; readonly version: string; readonly bytes: number } & Pick)
  | ({ readonly kind: 'charge'; readonly bytes: number } & Pick)
  | ({ readonly kind: 'progress'; readonly bytes: number; readonly ttlMs: number | null } & Pick)
  | ({ readonly kind: 'end'; readonly isForgotten: boolean; readonly isFailure: boolean } & Pick)
  | ({ readonly kind: 'evict'; readonly maxDatasets: number; readonly isPart: boolean } & Place)
  | ({ readonly kind: 'finish' | 'forget' | 'lock' | 'unlock' } & Pick)
  | ({ readonly kind: 'release'; readonly by: 'task' | 'dataset' | 'node' | 'lease' } & Pick)
  | ({ readonly kind: 'renew'; readonly ttlMs: number | null } & Pick)
  | ({ readonly kind: 'hand-over'; readonly holder: LeaseHolder } & Pick)
  | { readonly kind: 'expire'; readonly picks: readonly number[] }
  | ({ readonly kind: 'adopt'; readonly version: string; readonly hasSource: boolean } & Place)
  | ({ readonly kind: 'return'; readonly version: string; readonly maxDatasets: number } & Place)

const dataset = fc.constantFrom('birds', 'flowers')
const node = fc.constantFrom('node-a', 'node-b')
const version = fc.constantFrom('v1', 'v2')
const bytes = fc.constantFrom(0, 100, 300, 400)
const pick = fc.nat({ max: 7 })
const ttlMs = fc.constantFrom(null, 5, 1000, 60_000)
const holder: fc.Arbitrary<LeaseHolder> = fc.constantFrom<LeaseHolder>(
  { kind: 'ttl' },
  { kind: 'slurm', jobId: '7' },
  { kind: 'process', host: 'h', machine: 'm', pid: 7, startTicks: '1', bootId: 'b', pidNamespace: 'p' },
)
const lease: fc.Arbitrary<StepLease> = fc.record({ task: fc.constantFrom('task-1', 'task-2'), holder, ttlMs })

const action = (kind: StepAction['kind'], fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record({ kind: fc.constant(kind), ...fields }) as fc.Arbitrary<StepAction>
const often = (weight: number, arbitrary: fc.Arbitrary<StepAction>) => ({ weight, arbitrary })

const anyAction = fc.oneof(
  often(6, action('join', { dataset, node, lease, isRefresh: fc.boolean() })),
  often(2, action('lease-ready', { dataset, node, lease })),
  often(2, action('lease-copy', { pick, lease, purpose: fc.constantFrom('use', 'transfer') })),
  often(6, action('admit', { pick, version, bytes })),
  often(5, action('mark-ready', { pick, version, bytes })),
  often(2, action('charge', { pick, bytes })),
  often(2, action('progress', { pick, bytes, ttlMs })),
  often(2, action('end', { pick, isForgotten: fc.boolean(), isFailure: fc.boolean() })),
  often(3, action('evict', { dataset, node, maxDatasets: fc.nat({ max: 2 }), isPart: fc.boolean() })),
  often(3, action('finish', { pick })),
  often(1, action('forget', { pick })),
  often(1, action('lock', { pick })),
  often(1, action('unlock', { pick })),
  often(3, action('release', { pick, by: fc.constantFrom('task', 'dataset', 'node', 'lease') })),
  often(1, action('renew', { pick, ttlMs })),
  often(1, action('hand-over', { pick, holder })),
  often(2, action('expire', { picks: fc.array(pick, { maxLength: 2 }) })),
  often(2, action('adopt', { dataset, node, version, hasSource: fc.boolean() })),
  often(2, action('return', { dataset, node, version, maxDatasets: fc.nat({ max: 2 }) })),
)

/** Histories of up to 40 steps. */
export const stepsArbitrary: fc.Arbitrary<readonly Step[]> = fc.array(
  fc
    .tuple(
      anyAction,
      fc.constantFrom<0 | 1>(0, 1),
      fc.constantFrom(true, false, false),
      fc.constantFrom(1, 1, 1, 10, 2000, 90_000, -600_000),
    )
    .map(([chosen, client, isCompared, afterMs]) => ({ ...chosen, client, isCompared, afterMs })),
  { minLength: 1, maxLength: 40, size: 'max' },
)
