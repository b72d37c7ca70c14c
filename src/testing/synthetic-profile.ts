import type { MemoryProfile, ProfiledLayer, ProfiledTensor, StepPlace } from '../memory/step/profile.js'

/** One operation of a network with known shapes. */
export interface SyntheticNode {
  readonly name: string
  /** Indices of earlier nodes; empty: reads the batch. */
  readonly inputs: readonly number[]
  readonly outBytes: number
  readonly paramBytes: number
  readonly flops: number
  /** Whether its backward reads its inputs: for the parameter gradient only, for both gradients, or not. */
  readonly savesInput: 'param' | 'both' | 'none'
  readonly savesOutput: boolean
}

/** The simulated device of a synthetic profile. */
export interface SyntheticDevice {
  readonly name: string
  readonly bytes: number
  /** Sustained arithmetic in FLOP/s and memory traffic in bytes/s. */
  readonly flopsPerSecond: number
  readonly bytesPerSecond: number
  readonly copyLatencyUs: number
  /**
   * Time to copy all feature maps out, relative to the time of the forward pass: x in the reference study.
   * Below 1 the link is faster than the computation.
   */
  readonly copyRatio: number
}

/** A device of today's size; each profile sets the speed of its link. */
export const SYNTHETIC_DEVICE: Omit<SyntheticDevice, 'copyRatio'> = {
  name: 'simulated',
  bytes: 80 * 2 ** 30,
  flopsPerSecond: 60e12,
  bytesPerSecond: 2e12,
  copyLatencyUs: 10,
}

/** Computes a profile arithmetically: for planning studies and tests, never for predicting a real machine. */
export function buildProfile(
  model: string,
  nodes: readonly SyntheticNode[],
  device: SyntheticDevice,
): MemoryProfile {
  const consumers = nodes.map((): number[] => [])
  nodes.forEach((node, at) => {
    for (const input of node.inputs) consumers[input]!.push(at)
  })
  const layers = nodes.map((node, i): ProfiledLayer => {
    const inBytes = node.inputs.reduce((sum, input) => sum + nodes[input]!.outBytes, 0)
    const fwdUs =
      2 +
      1e6 * Math.max(node.flops / device.flopsPerSecond, (inBytes + node.outBytes) / device.bytesPerSecond)
    return {
      i,
      name: node.name,
      fwdUs: round(fwdUs),
      bwdParamUs: node.paramBytes > 0 ? round(fwdUs) : 0,
      bwdFeatUs: node.inputs.length > 0 ? round(fwdUs) : 0,
      prev: node.inputs,
      next: consumers[i]!,
    }
  })
  const tensors: ProfiledTensor[] = []
  const add = (tensor: Pick<ProfiledTensor, 'kind' | 'bytes' | 'producer' | 'uses'>) => {
    const id = tensors.length
    const refs = tensor.uses.filter(({ phase }) => phase !== 'fwd').length
    const shape = [Math.ceil(tensor.bytes / 4)]
    const view = { dtype: 'f32', shape, stride: [1], storage: id, offset: 0, pack: [], unpack: [] }
    tensors.push({ id, ...tensor, ...view, refs })
  }
  nodes.forEach((node, at) => {
    const producer: StepPlace = { layer: at, phase: 'fwd' }
    const readers = consumers[at]!
    const saved: StepPlace[] = readers.flatMap((reader): StepPlace[] => {
      const how = nodes[reader]!.savesInput
      const parameter: StepPlace = { layer: reader, phase: 'bwd_param' }
      if (how === 'none') return []
      return how === 'param' ? [parameter] : [parameter, { layer: reader, phase: 'bwd_feat' }]
    })
    if (node.savesOutput) saved.push({ layer: at, phase: 'bwd_feat' })
    const forward: StepPlace[] = readers.map((layer) => ({ layer, phase: 'fwd' }))
    add({ kind: 'feature', bytes: node.outBytes, producer, uses: [...forward, ...saved] })
    if (node.paramBytes > 0) {
      const both: StepPlace[] = [producer, { layer: at, phase: 'bwd_feat' }]
      const born: StepPlace = { layer: at, phase: 'bwd_param' }
      add({ kind: 'param', bytes: node.paramBytes, producer, uses: both })
      add({ kind: 'param_grad', bytes: node.paramBytes, producer: born, uses: [] })
      add({ kind: 'opt_state', bytes: node.paramBytes, producer, uses: [] })
    }
    if (node.inputs.length === 0) return
    const lastReader = readers.at(-1) ?? at
    const uses: StepPlace[] = [
      { layer: at, phase: 'bwd_param' },
      { layer: at, phase: 'bwd_feat' },
    ]
    const gradient: StepPlace = { layer: lastReader, phase: 'bwd_feat' }
    if (lastReader !== at) add({ kind: 'feature_grad', bytes: node.outBytes, producer: gradient, uses })
  })
  const featureBytes = tensors.reduce((sum, { kind, bytes }) => sum + (kind === 'feature' ? bytes : 0), 0)
  const forwardUs = layers.reduce((sum, { fwdUs }) => sum + fwdUs, 0)
  const gbs = round(featureBytes / (device.copyRatio * forwardUs) / 1e3)
  return {
    v: 1,
    kind: 'dsc.mem.profile',
    signature: `synthetic:${model}`,
    model: `synthetic:${model}`,
    device: {
      name: device.name,
      bytes: device.bytes,
      d2hGBs: gbs,
      h2dGBs: gbs,
      bothGBs: round(1.6 * gbs),
      copyLatencyUs: device.copyLatencyUs,
    },
    host: { bytes: 512 * 2 ** 30, pinnable: 256 * 2 ** 30 },
    layers,
    tensors,
    peak: { bytes: 0, at: 'not measured' },
    nonTorchBytes: 0,
  }
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
