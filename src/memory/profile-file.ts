import { createHash } from 'node:crypto'
import { invalidContents, PROFILE_FILE, readNamedFile } from './named-file.js'
import { type MemoryProfile, profileSchema } from './step/profile.js'

/** Reads and checks a profile; `hash` is the sha256 of its bytes, which identifies it in plans. */
export async function readProfile(path: string): Promise<{ profile: MemoryProfile; hash: string }> {
  const { value: profile, bytes } = await readNamedFile(path, PROFILE_FILE, profileSchema)
  const fault = findFault(profile)
  if (fault !== undefined) throw invalidContents(path, PROFILE_FILE, fault)
  return { profile, hash: createHash('sha256').update(bytes).digest('hex') }
}

/** The first fault among the references within a profile; undefined: all of them resolve. */
function findFault(profile: MemoryProfile): string | undefined {
  const layers = new Set(profile.layers.map(({ i }) => i))
  if (layers.size !== profile.layers.length) return 'two layers have the same number'
  const order = profile.backwardOrder
  if (order && (order.length !== layers.size || order.some((layer) => !layers.has(layer))))
    return 'backwardOrder must name every layer once'
  const places = [...profile.tensors, ...(profile.reuse?.tensors ?? [])].flatMap((tensor) => [
    tensor.producer,
    ...tensor.uses,
    ...(tensor.alive ?? []),
    ...(tensor.heldUntil ? [tensor.heldUntil] : []),
  ])
  const lost = places.find(({ layer }) => !layers.has(layer))
  if (lost) return `a tensor refers to layer ${lost.layer}, which is not in layers`
  const packs = profile.packLayers?.length ?? 0
  for (const list of ['packLayers', 'unpackLayers'] as const)
    if (profile[list]?.some((layer) => !layers.has(layer)))
      return `${list} names a layer that is not in layers`
  for (const [name, list] of [
    ['unpackOrder', profile.unpackOrder],
    ['reuse', profile.reuse?.packs],
  ] as const)
    if (list?.some((sequence) => sequence >= packs))
      return `${name} names a pack call beyond the ${packs} of packLayers`
  return findBlockFault(profile, layers)
}

function findBlockFault(
  { blocks = [], packLayers = [] }: MemoryProfile,
  layers: ReadonlySet<number>,
): string | undefined {
  for (const { name, layers: own, packs } of blocks) {
    if (own[0] > own[1] || !own.every((layer) => layers.has(layer)))
      return `block ${name} has layers ${own.join(' to ')}, which are not in layers`
    if (packs[0] > packs[1] || packs[1] > packLayers.length)
      return `block ${name} has the pack calls ${packs.join(' to ')} of the ${packLayers.length} of packLayers`
  }
  return undefined
}
