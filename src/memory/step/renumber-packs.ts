import type { Block } from './find-blocks.js'
import type { BlockInput, MemoryProfile } from './profile.js'

/** An input tensor of a block that runs again: saved where the block begins, unpacked where it runs again. */
export interface InputPack {
  readonly block: Block
  readonly view: BlockInput
  readonly pack: readonly number[]
  readonly unpack: readonly number[]
}

/** The pack and unpack calls of a step in which some blocks run again. */
export interface Calls {
  readonly packLayers: readonly number[]
  readonly unpackOrder: readonly number[]
  readonly unpackLayers: readonly number[]
  /** The number of a pack call of the recorded step; undefined inside of a block that runs again. */
  readonly packOf: (sequence: number) => number | undefined
  /** Positions of the unpack calls of a pack call. */
  readonly unpacksOf: (sequence: number) => readonly number[]
  readonly inputs: readonly InputPack[]
}

/**
 * Renumbers the saved-tensor calls of a recorded step. `torch.utils.checkpoint` (non-reentrant) saves a block's inputs
 * when the block begins, saves nothing inside, and unpacks them when the first tensor inside is needed.
 *
 * @param layerAgain the layer whose backward is the block's first: there its inputs are unpacked
 */
export function renumberPacks(
  profile: MemoryProfile,
  blocks: readonly Block[],
  layerAgain: (block: Block) => number,
): Calls {
  const { packLayers = [], unpackOrder = [], unpackLayers = [] } = profile
  const owners = new Array<Block | undefined>(packLayers.length)
  for (const block of blocks) owners.fill(block, ...(block.recorded?.packs ?? [0, 0]))
  const layers: number[] = []
  const numbers = new Array<number | undefined>(packLayers.length)
  const firstInput = new Map<Block, number>()
  packLayers.forEach((layer, sequence) => {
    const owner = owners[sequence]
    if (!owner) {
      numbers[sequence] = layers.push(layer) - 1
    } else if (!firstInput.has(owner)) {
      firstInput.set(owner, layers.length)
      for (const _ of owner.recorded!.inputs) layers.push(layer)
    }
  })
  const order: number[] = []
  const asking: number[] = []
  const ask = (sequence: number, layer: number) => {
    order.push(sequence)
    asking.push(layer)
  }
  const seen = new Set<Block>()
  unpackOrder.forEach((sequence, position) => {
    const owner = owners[sequence]
    if (!owner) ask(numbers[sequence]!, unpackLayers[position] ?? packLayers[sequence]!)
    else if (!seen.has(owner)) {
      seen.add(owner)
      owner.recorded!.inputs.forEach((_, at) => {
        ask(firstInput.get(owner)! + at, layerAgain(owner))
      })
    }
  })
  const positions = Map.groupBy(order.keys(), (position) => order[position]!)
  const unpacksOf = (sequence: number) => positions.get(sequence) ?? []
  const inputs = blocks.flatMap((block) =>
    (block.recorded?.inputs ?? []).map((view, at): InputPack => {
      const pack = firstInput.get(block)! + at
      return { block, view, pack: [pack], unpack: unpacksOf(pack) }
    }),
  )
  return {
    packLayers: layers,
    unpackOrder: order,
    unpackLayers: asking,
    packOf: (sequence) => numbers[sequence],
    unpacksOf,
    inputs,
  }
}
