import type { MemoryProfile, ProfiledTensor, StepPlace } from '../step/profile.js'
import type { Timeline } from '../step/timeline.js'
import type { OffloadedCall } from './offload-rules.js'
import type { AskCall, SaveCall } from './save-calls.js'

/** A step whose saved tensors a tool moves. */
export interface Rewriting {
  readonly timeline: Timeline
  readonly calls: readonly SaveCall[]
  readonly moved: readonly OffloadedCall[]
  /** The first call of backward for a moved tensor: its node ends every stash. */
  readonly firstAsk: AskCall | undefined
}

/** The first call of backward for a moved tensor. */
export function findFirstAsk(moved: readonly OffloadedCall[]): AskCall | undefined {
  return moved
    .flatMap(({ call }) => call.asked)
    .reduce<AskCall | undefined>(
      (first, ask) => (first && first.position < ask.position ? first : ask),
      undefined,
    )
}

/** The tensors of the step: moved ones leave early, and come back as copies. */
export function rewrite(profile: MemoryProfile, step: Rewriting): ProfiledTensor[] {
  const groups = Map.groupBy(profile.tensors, ({ storage }) => storage).values()
  return [...[...groups].flatMap((group) => shorten(step, group)), ...listCopies(profile, step)]
}

/** Ends a storage's first life once nothing on the device holds it: no layer, no stash, no saved tensor that stays. */
function shorten(
  { timeline, calls, moved, firstAsk }: Rewriting,
  group: readonly ProfiledTensor[],
): ProfiledTensor[] {
  const own = moved.filter(({ call }) => call.tensor.storage === group[0]!.storage)
  const isHeld = group.some(({ kind, heldUntil }) => kind !== 'feature' || heldUntil === undefined)
  if (own.length === 0 || isHeld) return [...group]
  const before = group[0]!.alive?.[1] ?? group[0]!.producer
  const leaving = new Set(own.map(({ call }) => call))
  const staying = calls.filter((call) => group.includes(call.tensor) && !leaving.has(call))
  const last = (asks: readonly AskCall[]) => asks.reduce((most, { position }) => Math.max(most, position), -1)
  const lastKept = last(staying.flatMap(({ asked }) => asked))
  const isLastKept = lastKept >= 0 && lastKept >= last(own.flatMap(({ call }) => call.asked))
  const ends: StepPlace[] = [
    ...group.flatMap(({ heldUntil }) => heldUntil ?? []),
    ...own.flatMap((one) => (one.stash === 'itself' ? endOfStash(one, firstAsk) : [])),
    ...staying.flatMap(({ asked, layer }) => [
      { layer, phase: 'fwd' as const },
      ...asked.map((ask): StepPlace => ({ layer: ask.layer, phase: 'bwd_feat' })),
    ]),
    ...(isLastKept ? [before] : []),
  ]
  const end = ends.reduce((most, place) => (timeline.indexOf(place) > timeline.indexOf(most) ? place : most))
  return group.map((tensor) => {
    const { alive, producer } = tensor
    return {
      ...tensor,
      uses: [],
      alive: [alive?.[0] ?? producer, end] as const,
      pack: [],
      unpack: [],
      refs: 0,
    }
  })
}

function endOfStash({ stashedUntil }: OffloadedCall, firstAsk: AskCall | undefined): StepPlace[] {
  if (stashedUntil) return [{ layer: stashedUntil.layer, phase: 'fwd' }]
  return firstAsk ? [{ layer: firstAsk.layer, phase: 'bwd_feat' }] : []
}

/** The calls of backward that get a copy. From a stash they get the tensor itself. */
export function listFetches(
  { firstAsk }: Rewriting,
  { call, stash, stashedUntil }: OffloadedCall,
): AskCall[] {
  const isStashed = stash !== 'none' && !stashedUntil
  return call.asked.filter(({ node }) => !(isStashed && node === firstAsk?.node))
}

/** The copies on the device: in a stash, and in backward from the call that asks to the end of its node. */
function listCopies(profile: MemoryProfile, step: Rewriting): ProfiledTensor[] {
  let storage = profile.tensors.reduce((most, one) => Math.max(most, one.storage), -1)
  const copy = (bytes: number, alive: Span) => makeCopy(++storage, bytes, alive)
  const stashed = step.moved.flatMap((one) => {
    const begin: StepPlace = { layer: one.call.layer, phase: 'fwd' }
    return one.stash === 'copy'
      ? endOfStash(one, step.firstAsk).map((end) => copy(one.call.bytes, [begin, end]))
      : []
  })
  const living = step.moved.flatMap((one) => {
    const { alive } = one.call.tensor
    const fetches = alive ? listFetches(step, one).filter((ask) => livesOn(step, one, ask)) : []
    return fetches.map(({ layer }) => copy(one.call.bytes, [{ layer, phase: 'bwd_param' }, alive![1]]))
  })
  const working = [...sumNodes(step)].map(([layer, bytes]) => copy(bytes, wholeBackward(layer)))
  return [...stashed, ...living, ...working]
}

/** First and last place at which something is alive. */
export type Span = readonly [StepPlace, StepPlace]

/** Both ends of a layer's forward. */
export function wholeForward(layer: number): Span {
  return [
    { layer, phase: 'fwd' },
    { layer, phase: 'fwd' },
  ]
}

/** Both ends of a layer's backward. */
export function wholeBackward(layer: number): Span {
  return [
    { layer, phase: 'bwd_param' },
    { layer, phase: 'bwd_feat' },
  ]
}

/** Memory that no plan moves. */
export function makeCopy(storage: number, bytes: number, alive: Span): ProfiledTensor {
  const view = {
    shape: [bytes],
    stride: [1],
    dtype: 'u8',
    storage,
    offset: 0,
    uses: [],
    pack: [],
    unpack: [],
  }
  return { ...view, id: 0, kind: 'workspace', bytes, producer: alive[0], alive, refs: 0 }
}

/** Whether a copy outlives the layer that asks for it, as a gradient or in a block that runs again. */
function livesOn({ timeline }: Rewriting, { call }: OffloadedCall, { layer }: AskCall): boolean {
  const { livesOn = false, alive } = call.tensor
  return (
    livesOn &&
    alive !== undefined &&
    timeline.indexOf(alive[1]) > timeline.indexOf({ layer, phase: 'bwd_feat' })
  )
}

/**
 * Per layer, the most that copies for its nodes take at once. Each node's copies end with it; those of tools with a
 * stash end when the next node has run.
 */
function sumNodes(step: Rewriting): ReadonlyMap<number, number> {
  const nodes = new Map<number, { layer: number; bytes: number; overlaps: boolean }>()
  for (const one of step.moved) {
    for (const ask of listFetches(step, one)) {
      if (livesOn(step, one, ask)) continue
      const { node, layer } = ask
      const bytes = (nodes.get(node)?.bytes ?? 0) + one.call.bytes
      nodes.set(node, { layer, bytes, overlaps: one.stash !== 'none' })
    }
  }
  const most = new Map<number, number>()
  let beforeBytes = 0
  for (const [, { layer, bytes, overlaps }] of [...nodes].sort(([a], [b]) => a - b)) {
    most.set(layer, Math.max(most.get(layer) ?? 0, bytes + (overlaps ? beforeBytes : 0)))
    beforeBytes = bytes
  }
  return most
}
