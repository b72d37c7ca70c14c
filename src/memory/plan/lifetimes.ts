import type { MemoryProfile, ProfiledTensor, TensorKind } from './profile.js'
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

/**
 * Groups tensors by storage and finds when each storage is alive.
 * With `canReuse`, fused layers are split (parameter gradient, then feature gradient into the dead map), so a map
 * needed only for the parameter gradient dies between the two; otherwise it lives through both.
 */
export function findLifetimes(profile: MemoryProfile, timeline: Timeline, canReuse: boolean): Lifetime[] {
  const groups = new Map<number, ProfiledTensor[]>()
  for (const tensor of profile.tensors) {
    const group = groups.get(tensor.storage)
    if (group) group.push(tensor)
    else groups.set(tensor.storage, [tensor])
  }
  const fused = new Set(profile.layers.filter((layer) => layer.fused).map((layer) => layer.i))
  const lastEvent = timeline.events.length - 1
  const ascending = (a: number, b: number) => a - b
  return [...groups.entries()]
    .sort(([a], [b]) => a - b)
    .map(([storage, tensors]): Lifetime => {
      const kind = STRENGTH.find((candidate) => tensors.some((tensor) => tensor.kind === candidate))!
      const isPersistent = PERSISTENT.includes(kind)
      const born = isPersistent ? -1 : Math.min(...tensors.map((tensor) => timeline.indexOf(tensor.producer)))
      const touched = new Set<number>(isPersistent ? [] : [born])
      for (const tensor of tensors) {
        for (const use of tensor.uses) {
          touched.add(timeline.indexOf(use))
          if (!canReuse && use.phase === 'bwd_param' && fused.has(use.layer))
            touched.add(timeline.indexOf({ layer: use.layer, phase: 'bwd_feat' }))
        }
      }
      const uses = [...touched].sort(ascending)
      const heldPlaces = tensors.flatMap((tensor) =>
        tensor.heldUntil ? [timeline.indexOf(tensor.heldUntil)] : [],
      )
      const forwardUses = uses.filter((event) => event < timeline.forwardCount)
      const spans = tensors.flatMap((tensor) => (tensor.alive ? [tensor.alive] : []))
      const from = isPersistent
        ? 0
        : spans.length > 0
          ? Math.min(...spans.map(([first]) => timeline.indexOf(first)))
          : born
      const to =
        isPersistent || kind === 'param_grad'
          ? lastEvent
          : spans.length > 0
            ? Math.max(...spans.map(([, last]) => timeline.indexOf(last)))
            : Math.max(born, ...uses)
      return {
        storage,
        kind,
        name: tensors.find(({ name }) => name !== undefined)?.name ?? null,
        bytes: Math.max(...tensors.map((tensor) => tensor.bytes)),
        born,
        from,
        to: Math.max(from, to),
        uses,
        heldUntil: Math.max(-1, ...heldPlaces, ...forwardUses),
        refs: uses.filter((event) => event >= timeline.forwardCount && event !== born).length,
        packs: tensors.flatMap((tensor) => tensor.pack).sort(ascending),
        unpacks: tensors.flatMap((tensor) => tensor.unpack).sort(ascending),
      }
    })
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
