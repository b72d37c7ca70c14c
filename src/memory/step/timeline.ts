import type { MemoryProfile, StepPhase, StepPlace } from './profile.js'

/** One step of the compute queue: one phase of one layer. */
export interface StepEvent {
  readonly index: number
  readonly layer: number
  readonly phase: StepPhase
  readonly durationUs: number
}

/** A training step as a row of events: all forwards, then per layer parameter gradient before feature gradient. */
export interface Timeline {
  readonly events: readonly StepEvent[]
  /** Start of every event when nothing stalls, in microseconds; one more entry for the end. */
  readonly startUs: readonly number[]
  readonly forwardCount: number
  /** Index of the event at which `place` happens. */
  readonly indexOf: (place: StepPlace) => number
}

/**
 * Lays a profile out in time. The parameter gradient always precedes the feature gradient of its layer
 * (seed 002, S5): the feature map is then dead when the feature gradient needs space.
 */
export function layOutTimeline(profile: MemoryProfile): Timeline {
  const { layers } = profile
  const backward = profile.backwardOrder ?? layers.map((layer) => layer.i).reverse()
  const forwardIndex = new Map(layers.map((layer, at) => [layer.i, at]))
  const backwardIndex = new Map(backward.map((layer, at) => [layer, layers.length + 2 * at]))
  const events: StepEvent[] = layers.map((layer, index) => ({
    index,
    layer: layer.i,
    phase: 'fwd',
    durationUs: layer.fwdUs,
  }))
  for (const layerId of backward) {
    const layer = layers[forwardIndex.get(layerId)!]!
    events.push(
      { index: events.length, layer: layerId, phase: 'bwd_param', durationUs: layer.bwdParamUs },
      { index: events.length + 1, layer: layerId, phase: 'bwd_feat', durationUs: layer.bwdFeatUs },
    )
  }
  const startUs = [0]
  for (const event of events) startUs.push(startUs.at(-1)! + event.durationUs)
  return {
    events,
    startUs,
    forwardCount: layers.length,
    indexOf: ({ layer, phase }) =>
      phase === 'fwd' ? forwardIndex.get(layer)! : backwardIndex.get(layer)! + (phase === 'bwd_feat' ? 1 : 0),
  }
}

/** A readable name of an event, for example `layer1.0.conv2 bwd_feat`. */
export function formatEvent(profile: MemoryProfile, event: StepEvent): string {
  const layer = profile.layers.find(({ i }) => i === event.layer)
  return `${layer?.name ?? `layer ${event.layer}`} ${event.phase}`
}
