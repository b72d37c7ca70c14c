import type { MemoryProfile, ProfiledTensor } from '../step/profile.js'

/** One call by which autograd saves a tensor, and those by which backward asks for it. */
export interface SaveCall {
  /** Its place among all calls of the step, from 0. */
  readonly sequence: number
  /** The layer whose forward saves. */
  readonly layer: number
  readonly tensor: ProfiledTensor
  /** Bytes of the view, without what else is in its storage. */
  readonly bytes: number
  readonly isContiguous: boolean
  readonly asked: readonly AskCall[]
}

/** One call by which backward asks for a saved tensor. */
export interface AskCall {
  /** Its place among all of them, from 0. */
  readonly position: number
  /** The layer whose backward asks. */
  readonly layer: number
  /** The autograd node that asks, numbered from 0 in order of the backward. */
  readonly node: number
}

/** Lists the calls of a recorded step, in order; none in profiles without calls. */
export function listSaveCalls(profile: MemoryProfile): SaveCall[] {
  const { packLayers = [] } = profile
  const asked = Map.groupBy(listAskCalls(profile), ({ sequence }) => sequence)
  return profile.tensors
    .flatMap((tensor) =>
      tensor.pack.map((sequence) => ({
        sequence,
        layer: packLayers[sequence] ?? tensor.producer.layer,
        tensor,
        bytes: sizeView(tensor),
        isContiguous: isContiguous(tensor),
        asked: asked.get(sequence) ?? [],
      })),
    )
    .sort((a, b) => a.sequence - b.sequence)
}

/** A node asks for its tensors in the order in which they were saved; the node before it saved earlier ones. */
function listAskCalls({ unpackOrder = [], unpackLayers = [], packLayers = [] }: MemoryProfile) {
  let node = -1
  return unpackOrder.map((sequence, position) => {
    const before = unpackOrder[position - 1]
    if (before === undefined || sequence <= before) node++
    return { sequence, position, layer: unpackLayers[position] ?? packLayers[sequence]!, node }
  })
}

function sizeView({ dtype, shape, bytes }: ProfiledTensor): number {
  const bits = Number(/\d+$/.exec(dtype)?.[0] ?? 8)
  const size = shape.reduce((product, length) => product * length, bits / 8)
  return Number.isFinite(size) ? size : bytes
}

function isContiguous({ shape, stride }: ProfiledTensor): boolean {
  let expected = 1
  for (let at = shape.length - 1; at >= 0; at--) {
    if (shape[at] !== 1 && stride[at] !== expected) return false
    expected *= shape[at]!
  }
  return true
}
