import { copyUs } from '../plan/candidates.js'
import type { MemoryProfile } from '../step/profile.js'
import { layOutTimeline } from '../step/timeline.js'
import { correctWorkspace } from './correct-workspace.js'
import type { OffloadedCall, OffloadRule } from './offload-rules.js'
import { findFirstAsk, listFetches, type Rewriting, rewrite } from './rewrite-step.js'
import { listSaveCalls } from './save-calls.js'

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
  const tensors = correctWorkspace(profile, rewrite(profile, step))
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

/** A CPU needs 8 times as long for a transposed tensor where its copy must be contiguous: ConvNeXt's maps. */
const TRANSPOSED = 8

/** Per layer: how long its forward waits for copies out. With a stash on a GPU they overlap with the computation. */
function waitForOut(profile: MemoryProfile, { moved }: Rewriting): ReadonlyMap<number, number> {
  const { d2hGBs, copyLatencyUs, name } = profile.device
  const isCpu = name.startsWith('cpu')
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
      const lastsUs = copyUs(one.call.bytes, d2hGBs, copyLatencyUs)
      if (isCpu && one.stash === 'copy' && !one.call.isContiguous) nowUs += TRANSPOSED * lastsUs
      freeUs = Math.max(freeUs, nowUs) + lastsUs
      doneUs.set(one, freeUs)
      if (one.stash === 'none' || isCpu) nowUs = freeUs
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
