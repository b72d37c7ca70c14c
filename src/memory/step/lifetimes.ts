import type { MemoryProfile, ProfiledTensor, TensorKind } from './profile.js'
import type { Timeline } from './timeline.js'

/** One storage over one step, in event indices. Tensors that share a storage live and move as one. */
export interface Lifetime {
  readonly storage: number
  readonly kind: TensorKind
  /** The parameter's name, for parameters and their gradients in recorded profiles. */
  readonly name: string | null
  readonly bytes: number
  /** Event that makes it; −1 if it outlives the step. */
  readonly born: number
  /** First and last event (inclusive) during which its bytes are allocated. */
  readonly from: number
  readonly to: number
  /** Events that touch it, ascending and distinct; the producer is the first. */
  readonly uses: readonly number[]
  /** Last forward event that holds it for another reason than autograd's. */
  readonly heldUntil: number
  /** Remaining backward uses when the forward ends: the initial value of the reference count. */
  readonly refs: number
  /** Whether its memory lives on in another storage when it is back: it must not lie in an arena. */
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

/** A plan's assumptions about reused memory. */
export interface ReuseOption {
  /** Whether feature gradients are written into dead maps, which live on as such, if the profile recorded that. */
  readonly canReuse: boolean
}

/** Groups tensors by storage and finds when each storage is alive. */
export function findLifetimes(
  profile: MemoryProfile,
  timeline: Timeline,
  { canReuse }: ReuseOption,
): Lifetime[] {
  const fused = new Set(profile.layers.filter((layer) => layer.fused).map((layer) => layer.i))
  const all = canReuse ? (profile.reuse?.tensors ?? profile.tensors) : profile.tensors
  return [...Map.groupBy(all, ({ storage }) => storage).values()]
    .sort(([a], [b]) => a!.storage - b!.storage)
    .map((tensors) => describeStorage(tensors, timeline, fused))
}

/** Called for every storage of every plan that is tried: uses loops, since temporary lists cost most of the time. */
function describeStorage(
  tensors: readonly ProfiledTensor[],
  timeline: Timeline,
  fused: ReadonlySet<number>,
): Lifetime {
  const kind = STRENGTH.find((candidate) => tensors.some((tensor) => tensor.kind === candidate))!
  const isPersistent = PERSISTENT.includes(kind)
  let born = isPersistent ? -1 : Number.POSITIVE_INFINITY
  let bytes = 0
  let held = -1
  for (const tensor of tensors) {
    if (!isPersistent) born = Math.min(born, timeline.indexOf(tensor.producer))
    bytes = Math.max(bytes, tensor.bytes)
    if (tensor.heldUntil) held = Math.max(held, timeline.indexOf(tensor.heldUntil))
  }
  const touched = listTouches(tensors, timeline, fused)
  if (!isPersistent) touched.push(born)
  const span = findSpan(tensors, timeline, { kind, born, uses: touched })
  const uses = sortUses(touched, span.from)
  let refs = 0
  for (const event of uses) {
    if (event < timeline.forwardCount) held = Math.max(held, event)
    else if (event !== born) refs++
  }
  return {
    storage: tensors[0]!.storage,
    kind,
    name: tensors.find(({ name }) => name !== undefined)?.name ?? null,
    bytes,
    born,
    ...span,
    uses,
    heldUntil: held,
    refs,
    livesOn: tensors.some((tensor) => tensor.livesOn === true),
    packs: sortCalls(tensors, 'pack'),
    unpacks: sortCalls(tensors, 'unpack'),
  }
}

/** Events in which tensors are used: a fused layer uses its inputs until its feature gradient is done. */
function listTouches(
  tensors: readonly ProfiledTensor[],
  timeline: Timeline,
  fused: ReadonlySet<number>,
): number[] {
  const touched: number[] = []
  for (const { uses } of tensors) {
    for (const use of uses) {
      touched.push(timeline.indexOf(use))
      if (use.phase === 'bwd_param' && fused.has(use.layer))
        touched.push(timeline.indexOf({ layer: use.layer, phase: 'bwd_feat' }))
    }
  }
  return touched
}

/** Ascending and distinct. A storage made after the fullest instant of its event is alive only from the next one on. */
function sortUses(touched: readonly number[], from: number): number[] {
  const sorted = touched.map((event) => Math.max(event, from)).sort(ascending)
  return sorted.filter((event, at) => event !== sorted[at - 1])
}

function sortCalls(tensors: readonly ProfiledTensor[], call: 'pack' | 'unpack'): readonly number[] {
  return tensors.length === 1 && tensors[0]![call].length < 2
    ? tensors[0]![call]
    : tensors.flatMap((tensor) => tensor[call]).sort(ascending)
}

/** First and last event of a storage: as recorded, or from its producer to its last use. */
function findSpan(
  tensors: readonly ProfiledTensor[],
  timeline: Timeline,
  { kind, born, uses }: Pick<Lifetime, 'kind' | 'born' | 'uses'>,
): { from: number; to: number } {
  const lastEvent = timeline.events.length - 1
  if (PERSISTENT.includes(kind)) return { from: 0, to: lastEvent }
  let from = Number.POSITIVE_INFINITY
  let last = -1
  for (const { alive } of tensors) {
    if (!alive) continue
    from = Math.min(from, timeline.indexOf(alive[0]))
    last = Math.max(last, timeline.indexOf(alive[1]))
  }
  if (last < 0) {
    from = born
    last = uses.reduce((latest, event) => Math.max(latest, event), born)
  }
  return { from, to: Math.max(from, kind === 'param_grad' ? lastEvent : last) }
}

function ascending(a: number, b: number): number {
  return a - b
}

/** Bytes alive during each event when nothing moves, including `fixedBytes` (memory unknown to torch). */
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
