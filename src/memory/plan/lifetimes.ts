import type { MemoryProfile, ProfiledTensor, StepPlace, TensorKind } from './profile.js'
import type { Timeline } from './timeline.js'

/** One storage over one step, in event indices. Everything that shares a storage lives and moves as one. */
export interface Lifetime {
  readonly storage: number
  readonly kind: TensorKind
  /** The parameter's name, of parameters and their gradients in recorded profiles. */
  readonly name: string | null
  readonly bytes: number
  /** Event that makes it; −1 for what outlives the step. */
  readonly born: number
  /** First and last event (inclusive) during which its bytes are taken. */
  readonly from: number
  readonly to: number
  /** Events that touch it, ascending and distinct; the producer is the first. */
  readonly uses: readonly number[]
  /** Last forward event that holds it for another reason than autograd's. */
  readonly heldUntil: number
  /** Backward uses still to come when the forward ends: what the reference count starts at. */
  readonly refs: number
  /** Whether its memory lives on in something else when it is back: it must not lie in an arena. */
  readonly livesOn: boolean
  /** Sequence numbers of the pack calls, ascending, and positions of the unpack calls, ascending. */
  readonly packs: readonly number[]
  readonly unpacks: readonly number[]
}

const STRENGTH: readonly TensorKind[] = [
  'param',
  'buffer',
  'opt_state',
  'param_grad',
  'feature',
  'feature_grad',
  'workspace',
]
const PERSISTENT: readonly TensorKind[] = ['param', 'buffer', 'opt_state']

/** What a plan may assume of memory that is used again. */
export interface ReuseOption {
  /** Whether feature gradients are written into dead maps, which live on as such, where the profile recorded that. */
  readonly canReuse: boolean
}

/** Groups tensors by storage and finds when each storage is alive. */
export function findLifetimes(
  profile: MemoryProfile,
  timeline: Timeline,
  { canReuse }: ReuseOption,
): Lifetime[] {
  const fused = new Set(profile.layers.filter((layer) => layer.fused).map((layer) => layer.i))
  const isLast = ({ layer, phase }: StepPlace) => phase === 'bwd_param' && fused.has(layer)
  /** Events that a tensor is used in: a fused layer uses what it needs until its feature gradient is done. */
  const usesOf = ({ uses }: ProfiledTensor) =>
    uses.flatMap((use) => [
      timeline.indexOf(use),
      ...(isLast(use) ? [timeline.indexOf({ layer: use.layer, phase: 'bwd_feat' })] : []),
    ])
  const all = canReuse ? (profile.reuse?.tensors ?? profile.tensors) : profile.tensors
  return [...Map.groupBy(all, ({ storage }) => storage).values()]
    .sort(([a], [b]) => a!.storage - b!.storage)
    .map((tensors) => describeStorage(tensors, timeline, usesOf))
}

function describeStorage(
  tensors: readonly ProfiledTensor[],
  timeline: Timeline,
  usesOf: (tensor: ProfiledTensor) => number[],
): Lifetime {
  const kind = STRENGTH.find((candidate) => tensors.some((tensor) => tensor.kind === candidate))!
  const isPersistent = PERSISTENT.includes(kind)
  const born = isPersistent ? -1 : Math.min(...tensors.map(({ producer }) => timeline.indexOf(producer)))
  const touched = [...(isPersistent ? [] : [born]), ...tensors.flatMap(usesOf)]
  const span = findSpan(tensors, timeline, { kind, born, uses: touched })
  // It may be made after the fullest instant of its event, and is alive only from the next one on then.
  const uses = [...new Set(touched.map((event) => Math.max(event, span.from)))].sort(ascending)
  const held = tensors.flatMap(({ heldUntil }) => (heldUntil ? [timeline.indexOf(heldUntil)] : []))
  return {
    storage: tensors[0]!.storage,
    kind,
    name: tensors.find(({ name }) => name !== undefined)?.name ?? null,
    bytes: Math.max(...tensors.map((tensor) => tensor.bytes)),
    born,
    ...span,
    uses,
    heldUntil: Math.max(-1, ...held, ...uses.filter((event) => event < timeline.forwardCount)),
    refs: uses.filter((event) => event >= timeline.forwardCount && event !== born).length,
    livesOn: tensors.some((tensor) => tensor.livesOn === true),
    packs: tensors.flatMap((tensor) => tensor.pack).sort(ascending),
    unpacks: tensors.flatMap((tensor) => tensor.unpack).sort(ascending),
  }
}

/** First and last event of a storage: as they were recorded, or from what makes it to its last use. */
function findSpan(
  tensors: readonly ProfiledTensor[],
  timeline: Timeline,
  { kind, born, uses }: Pick<Lifetime, 'kind' | 'born' | 'uses'>,
): { from: number; to: number } {
  const lastEvent = timeline.events.length - 1
  if (PERSISTENT.includes(kind)) return { from: 0, to: lastEvent }
  const spans = tensors.flatMap(({ alive }) => (alive ? [alive] : []))
  const isRecorded = spans.length > 0
  const from = isRecorded ? Math.min(...spans.map(([first]) => timeline.indexOf(first))) : born
  const last = isRecorded
    ? Math.max(...spans.map(([, place]) => timeline.indexOf(place)))
    : Math.max(born, ...uses)
  return { from, to: Math.max(from, kind === 'param_grad' ? lastEvent : last) }
}

function ascending(a: number, b: number): number {
  return a - b
}

/** Bytes alive during each event when nothing moves, `fixedBytes` (memory torch does not know) included. */
export function sumLiveBytes(
  lifetimes: readonly Lifetime[],
  eventCount: number,
  fixedBytes: number,
): number[] {
  const change = new Array<number>(eventCount + 1).fill(0)
  for (const { from, to, bytes } of lifetimes) {
    change[from]! += bytes
    change[to + 1]! -= bytes
  }
  const live: number[] = []
  let bytes = fixedBytes
  for (let event = 0; event < eventCount; event++) {
    bytes += change[event]!
    live.push(bytes)
  }
  return live
}
