import type { Block } from './find-blocks.js'
import type { MemoryProfile, ProfiledTensor, StepPlace } from './profile.js'
import { layOutTimeline, type Timeline } from './timeline.js'

/**
 * The profile of the same step when `blocks` keep only what comes into them, and run their forward again when their
 * backward begins: longer by those forwards, and their feature maps live twice for a short time each. For planning and
 * simulating only: no executor has its pack calls.
 */
export function recomputeBlocks(profile: MemoryProfile, blocks: readonly Block[]): MemoryProfile {
  const timeline = layOutTimeline(profile)
  const recomputed = blocks.map((block) => describeRecomputation(profile, block))
  const homeOf = new Map(recomputed.flatMap((one) => [...one.layers].map((layer) => [layer, one] as const)))
  const extraUs = new Map(recomputed.map(({ at, forwardUs }) => [at.layer, forwardUs]))
  const next = { storage: 1 + profile.tensors.reduce((most, { storage }) => Math.max(most, storage), 0) }
  const tensors = [...Map.groupBy(profile.tensors, ({ storage }) => storage).values()].flatMap((group) => {
    const home = homeOf.get(group[0]!.producer.layer)
    const isInside = group.every(({ kind, producer }) => kind === 'feature' && isMadeIn(home, producer))
    if (home && isInside) return splitStorage(group, { home, timeline, storage: next.storage++ })
    return group.map((tensor) => keepForRecomputation(tensor, { homeOf, timeline }))
  })
  const { packLayers: _packs, unpackOrder: _unpacks, ...rest } = profile
  return {
    ...rest,
    layers: profile.layers.map((layer) => ({
      ...layer,
      bwdParamUs: layer.bwdParamUs + (extraUs.get(layer.i) ?? 0),
    })),
    tensors: tensors.map((tensor, id) => ({ ...tensor, id })),
  }
}

/** Sum of the forward times of `block`, in microseconds: what recomputing it costs. */
export function sumForwardUs(profile: MemoryProfile, block: Block): number {
  const layers = new Set(block.layers)
  return profile.layers.reduce((sum, { i, fwdUs }) => sum + (layers.has(i) ? fwdUs : 0), 0)
}

/** A block that runs its forward again. */
interface Recomputation {
  readonly layers: ReadonlySet<number>
  readonly forwardUs: number
  /** Where its backward begins: there it has run again. */
  readonly at: StepPlace
}

function describeRecomputation(profile: MemoryProfile, block: Block): Recomputation {
  const layers = new Set(block.layers)
  const backward = profile.backwardOrder ?? profile.layers.map(({ i }) => i).reverse()
  const first = backward.find((layer) => layers.has(layer))!
  return { layers, forwardUs: sumForwardUs(profile, block), at: { layer: first, phase: 'bwd_param' } }
}

function isMadeIn(home: Recomputation | undefined, producer: StepPlace): boolean {
  return home !== undefined && producer.phase === 'fwd' && home.layers.has(producer.layer)
}

/** A storage made inside a recomputed block: once for the forward, and once more for the block's own backward. */
function splitStorage(
  group: readonly ProfiledTensor[],
  { home, timeline, storage }: { home: Recomputation; timeline: Timeline; storage: number },
): ProfiledTensor[] {
  const isAgain = ({ layer, phase }: StepPlace) => phase !== 'fwd' && home.layers.has(layer)
  return group.flatMap((tensor) => {
    const unnumbered = { ...tensor, pack: [], unpack: [], refs: 0 }
    const uses = tensor.uses.filter((use) => !isAgain(use))
    const last = findLast([tensor.producer, ...uses, tensor.heldUntil ?? tensor.producer], timeline)
    const first = { ...unnumbered, uses, alive: [tensor.alive?.[0] ?? tensor.producer, last] as const }
    const again = tensor.uses.filter(isAgain)
    if (again.length === 0) return [first]
    const { heldUntil: _held, ...rest } = unnumbered
    const alive = [home.at, findLast(again, timeline)] as const
    // It lives in its block's backward only. Executors leave it where it is.
    return [first, { ...rest, kind: 'workspace' as const, storage, producer: home.at, uses: again, alive }]
  })
}

function findLast(places: readonly StepPlace[], timeline: Timeline): StepPlace {
  return places.reduce((last, place) => (timeline.indexOf(place) > timeline.indexOf(last) ? place : last))
}

/** What comes into a recomputed block is used once more, where the block runs again. `checkpoint()` holds it until then. */
function keepForRecomputation(
  tensor: ProfiledTensor,
  { homeOf, timeline }: { homeOf: ReadonlyMap<number, Recomputation>; timeline: Timeline },
): ProfiledTensor {
  const unnumbered = { ...tensor, pack: [], unpack: [] }
  if (tensor.kind !== 'feature') return unnumbered
  const homes = new Set(tensor.uses.flatMap(({ layer }) => homeOf.get(layer) ?? []))
  const added = [...homes].filter(({ layers }) => !layers.has(tensor.producer.layer)).map(({ at }) => at)
  if (added.length === 0) return unnumbered
  const uses = [...tensor.uses, ...added]
  const first = tensor.alive?.[0] ?? tensor.producer
  const last = findLast([first, ...uses, tensor.alive?.[1] ?? first], timeline)
  return { ...unnumbered, kind: 'workspace', uses, alive: [first, last] }
}
