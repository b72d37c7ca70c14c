import type { MemoryProfile } from '../step/profile.js'

/** A saved map that dies under its feature gradient, which is written into its space (seed 002, S6). */
export interface Reuse {
  /** The pack call that saved the map for the layer that reads it last. */
  readonly pack: number
  readonly layer: number
  readonly storage: number
  readonly bytes: number
}

/** The reuse recorded in a profile, in the order of its pack calls. */
export function listReuse({ reuse, packLayers = [] }: MemoryProfile): Reuse[] {
  return (reuse?.packs ?? []).map((pack) => {
    const { storage, bytes } = reuse!.tensors.find((tensor) => tensor.pack.includes(pack))!
    return { pack, layer: packLayers[pack]!, storage, bytes }
  })
}
