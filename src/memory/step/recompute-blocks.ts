import { type Block, findBlocks, listCalls } from './find-blocks.js'
import type { MemoryProfile, ProfiledTensor, StepPlace } from './profile.js'
import { type Calls, type InputPack, renumberPacks } from './renumber-packs.js'
import { layOutTimeline, type Timeline } from './timeline.js'

/**
 * The profile of the same step when `blocks` keep only their inputs, and run their forward again when their backward
 * begins: longer by those forwards, and their feature maps live twice for a short time each. Blocks must not overlap.
 * Their inputs can move between the two runs.
 */
export function recomputeBlocks(profile: MemoryProfile, blocks: readonly Block[]): MemoryProfile {
  if (blocks.length === 0) return profile
  const timeline = layOutTimeline(profile)
  const backward = profile.backwardOrder ?? profile.layers.map(({ i }) => i).reverse()
  const placeOf = new Map(backward.map((layer, at) => [layer, at]))
  const recomputed = new Map(
    blocks.map((block) => [block, describeRecomputation(profile, block, placeOf)] as const),
  )
  const calls = renumberPacks(profile, blocks, (block) => recomputed.get(block)!.at.layer)
  const homeOf = new Map(
    [...recomputed.values()].flatMap((one) => [...one.layers].map((layer) => [layer, one] as const)),
  )
  const inputs = Map.groupBy(calls.inputs, ({ view }) => view.storage)
  const step: Rewriting = { timeline, recomputed, calls, homeOf, isRecorded: profile.blocks !== undefined }
  let storage = 1 + profile.tensors.reduce((most, one) => Math.max(most, one.storage), 0)
  const tensors = [...Map.groupBy(profile.tensors, (one) => one.storage)].flatMap(([own, group]) => {
    const rewritten = rewriteStorage(step, group, inputs.get(own) ?? [])
    if (rewritten.again.length > 0) storage++
    return [...rewritten.first, ...rewritten.again.map((one) => ({ ...one, storage: storage - 1 }))]
  })
  const extraUs = new Map([...recomputed.values()].map(({ at, forwardUs }) => [at.layer, forwardUs]))
  const { reuse: _reuse, ...rest } = profile
  return {
    ...rest,
    layers: profile.layers.map((layer) => ({
      ...layer,
      bwdParamUs: layer.bwdParamUs + (extraUs.get(layer.i) ?? 0),
      leastBytes: undefined, // of the recorded step
    })),
    tensors: tensors.map((tensor, id) => ({ ...tensor, id })),
    packLayers: profile.packLayers && calls.packLayers,
    unpackOrder: profile.unpackOrder && calls.unpackOrder,
    unpackLayers: profile.unpackOrder && calls.unpackLayers,
  }
}

/** The profile of the step that `plan` plans: its original `profile`, with the plan's blocks recomputed. */
export function profileOfPlan(
  profile: MemoryProfile,
  plan: { readonly recompute: readonly { readonly name: string; readonly call: number }[] },
): MemoryProfile {
  const isPlanned = ({ name, recorded }: Block) =>
    plan.recompute.some((one) => one.name === name && one.call === (recorded?.call ?? 0))
  const all = profile.blocks ? listCalls(profile) : findBlocks(profile)
  return recomputeBlocks(profile, all.filter(isPlanned))
}

/**
 * Time that `checkpoint()` itself needs on a CPU, per block and per tensor saved inside. The unit is `hookUs`. One core
 * with PyTorch 2.15 needs 126 µs and 16 µs; its `hookUs` is 5.7.
 */
const BLOCK_HOOKS = 22
const SAVE_HOOKS = 2.8

/** Microseconds of running `block` again: its forward and, on a CPU, the time of `checkpoint()` itself. */
export function sumForwardUs(profile: MemoryProfile, block: Block): number {
  const times = forwardUsOf(profile)
  const [first, end] = block.recorded?.packs ?? [0, 0]
  const ownUs = (profile.device.hookUs ?? 0) * (BLOCK_HOOKS + SAVE_HOOKS * (end - first))
  return block.layers.reduce((sum, layer) => sum + times.get(layer)!, ownUs)
}

const FORWARD_US = new WeakMap<MemoryProfile, ReadonlyMap<number, number>>()

/** Forward times by layer: requested again and again while blocks are compared. */
function forwardUsOf(profile: MemoryProfile): ReadonlyMap<number, number> {
  const known = FORWARD_US.get(profile) ?? new Map(profile.layers.map(({ i, fwdUs }) => [i, fwdUs]))
  FORWARD_US.set(profile, known)
  return known
}

/** A block that runs its forward again. */
interface Recomputation {
  readonly layers: ReadonlySet<number>
  readonly forwardUs: number
  /** Its last layer's forward: until then its caller holds its inputs. */
  readonly end: StepPlace
  /** Where its backward begins: by then it has run again. */
  readonly at: StepPlace
}

/** The facts about the step that rewriting a storage needs. */
interface Rewriting {
  readonly timeline: Timeline
  readonly recomputed: ReadonlyMap<Block, Recomputation>
  readonly calls: Calls
  readonly homeOf: ReadonlyMap<number, Recomputation>
  /** Whether pack calls are known: without them a block's inputs are the storages it reads. */
  readonly isRecorded: boolean
}

function describeRecomputation(
  profile: MemoryProfile,
  block: Block,
  placeOf: ReadonlyMap<number, number>,
): Recomputation {
  const first = block.layers.reduce((a, b) => (placeOf.get(b)! < placeOf.get(a)! ? b : a))
  return {
    layers: new Set(block.layers),
    forwardUs: sumForwardUs(profile, block),
    end: { layer: block.layers.at(-1)!, phase: 'fwd' },
    at: { layer: first, phase: 'bwd_param' },
  }
}

/** Splits one storage: its life apart from the second run of the block that makes it, and its life in that run. */
function rewriteStorage(
  step: Rewriting,
  group: readonly ProfiledTensor[],
  inputs: readonly InputPack[],
): { first: ProfiledTensor[]; again: ProfiledTensor[] } {
  const { producer } = group[0]!
  const isMap = group.every(({ kind }) => kind === 'feature' || (kind === 'workspace' && inputs.length > 0))
  const maker = producer.phase === 'fwd' ? step.homeOf.get(producer.layer) : undefined
  const home = isMap && group.every((tensor) => tensor.producer.phase === 'fwd') ? maker : undefined
  const isAgain = ({ layer, phase }: StepPlace) => phase !== 'fwd' && home?.layers.has(layer) === true
  const readers = isMap ? findReaders(step, group, { home, inputs }) : []
  const first = group.map((tensor) => {
    const pack = tensor.pack.flatMap((sequence) => step.calls.packOf(sequence) ?? [])
    const unpack = pack.flatMap(step.calls.unpacksOf).sort((a, b) => a - b)
    return { ...tensor, pack, unpack, refs: unpack.length, uses: tensor.uses.filter((use) => !isAgain(use)) }
  })
  const template = first[0]!
  const views = inputs.map(
    ({ view, pack, unpack }): ProfiledTensor => ({
      ...template,
      ...view,
      pack,
      unpack,
      refs: unpack.length,
      livesOn: true, // tensors that the second run saves can share its memory
    }),
  )
  const all = [...first, ...views]
  if (!isMap) return { first: all, again: [] }
  const again = home ? group.flatMap((tensor) => runAgain(tensor, { isAgain, home, ...step })) : []
  return { first: describeFirst(step, all, { readers, isChanged: home !== undefined }), again }
}

/** The recomputed blocks that need a storage from outside in order to run again. */
function findReaders(
  { homeOf, recomputed, isRecorded }: Rewriting,
  group: readonly ProfiledTensor[],
  { home, inputs }: { readonly home: Recomputation | undefined; readonly inputs: readonly InputPack[] },
): Recomputation[] {
  const found = isRecorded
    ? inputs.map(({ block }) => recomputed.get(block)!)
    : group.flatMap(({ uses }) => uses.flatMap(({ layer }) => homeOf.get(layer) ?? []))
  return [...new Set(found)].filter((reader) => reader !== home)
}

/** A storage's life apart from the second run of the block that makes it. */
function describeFirst(
  { timeline, isRecorded }: Rewriting,
  tensors: readonly ProfiledTensor[],
  { readers, isChanged }: { readonly readers: readonly Recomputation[]; readonly isChanged: boolean },
): ProfiledTensor[] {
  const added = readers.map(({ at }) => at)
  const isSaved = !isRecorded || tensors.some(({ pack }) => pack.length > 0)
  const isHeldLong = tensors.some(({ kind, heldUntil }) => kind === 'workspace' && heldUntil === undefined)
  const kind = isSaved && !isHeldLong ? 'feature' : 'workspace'
  const heldUntil = readers.map(({ end }) => end)
  return tensors.map((tensor) => {
    const held = findLast([...(tensor.heldUntil ? [tensor.heldUntil] : []), ...heldUntil], timeline)
    const uses = [...tensor.uses, ...added]
    // It is touched by its producer, even if it is not yet alive at that event's fullest instant.
    const birth = isChanged ? tensor.producer : (tensor.alive?.[0] ?? tensor.producer)
    const before = (isChanged && !isHeldLong) || !tensor.alive ? [] : [tensor.alive[1]]
    const last = findLast([birth, tensor.producer, ...uses, ...before, ...(held ? [held] : [])], timeline)!
    return { ...tensor, kind, uses, alive: [birth, last], heldUntil: held ?? tensor.heldUntil }
  })
}

/** The second life of a storage, in its block's backward only. Executors leave it where it is. */
function runAgain(
  tensor: ProfiledTensor,
  {
    isAgain,
    home,
    timeline,
  }: Pick<Rewriting, 'timeline'> & { isAgain: (use: StepPlace) => boolean; home: Recomputation },
): ProfiledTensor[] {
  const uses = tensor.uses.filter(isAgain)
  if (uses.length === 0) return []
  const { heldUntil: _held, ...rest } = tensor
  const alive = [home.at, findLast(uses, timeline)!] as const
  return [{ ...rest, kind: 'workspace', producer: home.at, uses, alive, pack: [], unpack: [], refs: 0 }]
}

function findLast(places: readonly StepPlace[], timeline: Timeline): StepPlace | undefined {
  return places.reduce<StepPlace | undefined>(
    (last, place) => (last && timeline.indexOf(place) <= timeline.indexOf(last) ? last : place),
    undefined,
  )
}
