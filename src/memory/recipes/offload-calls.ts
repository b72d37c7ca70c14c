import { copyUs } from '../plan/candidates.js'
import type { MemoryProfile, ProfiledTensor, StepPlace } from '../step/profile.js'
import { layOutTimeline, type Timeline } from '../step/timeline.js'
import type { OffloadedCall, OffloadRule } from './offload-rules.js'
import { type AskCall, listSaveCalls, type SaveCall } from './save-calls.js'

/** A step in which a tool moves saved tensors by its own rule. */
export interface OffloadedStep {
  /** The same step with the lives of moved tensors, and with the time that computation waits for copies. */
  readonly profile: MemoryProfile
  /** Copied out and in. */
  readonly movedBytes: number
  readonly waitUs: number
  readonly moved: readonly OffloadedCall[]
}

/**
 * Rewrites a step for a tool that moves saved tensors by `rule` when they are saved, and fetches them when a node asks:
 * every call has a copy of its own. Pure.
 */
export function offloadCalls(profile: MemoryProfile, rule: OffloadRule): OffloadedStep {
  const calls = listSaveCalls(profile)
  const moved = rule(calls)
  const step: Rewriting = { timeline: layOutTimeline(profile), calls, moved, firstAsk: findFirstAsk(moved) }
  const [out, back] = [waitForOut(profile, step), waitForBack(profile, step)]
  const waitUsOf = (layer: number, waits: ReadonlyMap<number, number>) => waits.get(layer) ?? 0
  const { reuse: _reuse, ...rest } = profile
  const tensors = [
    ...[...Map.groupBy(profile.tensors, ({ storage }) => storage).values()].flatMap((group) =>
      shorten(step, group),
    ),
    ...listCopies(profile, step),
  ]
  return {
    profile: {
      ...rest,
      layers: profile.layers.map((layer) => ({
        ...layer,
        fwdUs: layer.fwdUs + waitUsOf(layer.i, out),
        bwdParamUs: layer.bwdParamUs + waitUsOf(layer.i, back),
      })),
      tensors: tensors.map((tensor, id) => ({ ...tensor, id })),
    },
    movedBytes: moved.reduce((sum, one) => sum + one.call.bytes * (1 + listFetches(step, one).length), 0),
    waitUs: [...out.values(), ...back.values()].reduce((sum, us) => sum + us, 0),
    moved,
  }
}

interface Rewriting {
  readonly timeline: Timeline
  readonly calls: readonly SaveCall[]
  readonly moved: readonly OffloadedCall[]
  /** The first call of backward for a moved tensor: its node ends every stash. */
  readonly firstAsk: AskCall | undefined
}

function findFirstAsk(moved: readonly OffloadedCall[]): AskCall | undefined {
  return moved
    .flatMap(({ call }) => call.asked)
    .reduce<AskCall | undefined>(
      (first, ask) => (first && first.position < ask.position ? first : ask),
      undefined,
    )
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
function listFetches({ firstAsk }: Rewriting, { call, stash, stashedUntil }: OffloadedCall): AskCall[] {
  const isStashed = stash !== 'none' && !stashedUntil
  return call.asked.filter(({ node }) => !(isStashed && node === firstAsk?.node))
}

/** The copies on the device: in a stash, and in backward from the call that asks to the end of its node. */
function listCopies(profile: MemoryProfile, step: Rewriting): ProfiledTensor[] {
  let storage = profile.tensors.reduce((most, one) => Math.max(most, one.storage), -1)
  const copy = (bytes: number, alive: readonly [StepPlace, StepPlace]): ProfiledTensor => {
    const view = { shape: [bytes], stride: [1], dtype: 'u8', storage: ++storage, offset: 0 }
    return {
      ...view,
      id: 0,
      kind: 'workspace',
      bytes,
      producer: alive[0],
      alive,
      uses: [],
      pack: [],
      unpack: [],
      refs: 0,
    }
  }
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
  const working = [...sumNodes(step)].map(([layer, bytes]) =>
    copy(bytes, [
      { layer, phase: 'bwd_param' },
      { layer, phase: 'bwd_feat' },
    ]),
  )
  return [...stashed, ...living, ...working]
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

/** Per layer: how long its forward waits for copies out. With a stash on a GPU they overlap with the computation. */
function waitForOut(profile: MemoryProfile, { moved }: Rewriting): ReadonlyMap<number, number> {
  const { d2hGBs, copyLatencyUs, name } = profile.device
  const waits = new Map<number, number>()
  const callsOf = Map.groupBy(moved, ({ call }) => call.layer)
  const released = Map.groupBy(
    moved.filter(({ stashedUntil }) => stashedUntil),
    ({ stashedUntil }) => stashedUntil!,
  )
  const doneUs = new Map<OffloadedCall, number>()
  let [nowUs, freeUs] = [0, 0]
  for (const layer of profile.layers) {
    nowUs += layer.fwdUs
    const began = nowUs
    for (const one of callsOf.get(layer.i) ?? []) {
      for (const old of released.get(one.call) ?? []) nowUs = Math.max(nowUs, doneUs.get(old)!)
      freeUs = Math.max(freeUs, nowUs) + copyUs(one.call.bytes, d2hGBs, copyLatencyUs)
      doneUs.set(one, freeUs)
      if (one.stash === 'none' || name.startsWith('cpu')) nowUs = freeUs
    }
    if (nowUs > began) waits.set(layer.i, nowUs - began)
  }
  return waits
}

/** Per layer: how long its backward waits for copies in. No tool fetches ahead. */
function waitForBack({ device }: MemoryProfile, step: Rewriting): ReadonlyMap<number, number> {
  const waits = new Map<number, number>()
  for (const one of step.moved)
    for (const { layer } of listFetches(step, one)) {
      const us = copyUs(one.call.bytes, device.h2dGBs, device.copyLatencyUs)
      waits.set(layer, (waits.get(layer) ?? 0) + us)
    }
  return waits
}
