import { createHash } from 'node:crypto'
import { z } from 'zod'
import { invalidContents, PROFILE_FILE, readJsonFile } from './named-file.js'
import type { MemoryProfile } from './step/profile.js'

const count = z.number().int().nonnegative()
const microseconds = z.number().nonnegative()
const speed = z.number().positive()
const phase = z.enum(['fwd', 'bwd_param', 'bwd_feat'])
const place = z.object({ layer: count, phase })

const tensor = z.object({
  id: count,
  kind: z.enum(['feature', 'feature_grad', 'param', 'param_grad', 'opt_state', 'buffer', 'workspace']),
  name: z.string().optional(),
  bytes: count,
  dtype: z.string(),
  shape: z.array(count),
  storage: count,
  offset: count,
  stride: z.array(z.number().int()),
  producer: place,
  uses: z.array(place),
  pack: z.array(count),
  unpack: z.array(count),
  refs: count,
  alive: z.tuple([place, place]).optional(),
  heldUntil: place.optional(),
  livesOn: z.boolean().optional(),
  line: z.string().optional(),
})

const profileSchema = z.object({
  v: z.literal(1),
  kind: z.literal('dsc.mem.profile'),
  signature: z.string(),
  model: z.string(),
  device: z.object({
    name: z.string(),
    bytes: count,
    d2hGBs: speed,
    h2dGBs: speed,
    bothGBs: speed,
    copyLatencyUs: microseconds,
  }),
  host: z.object({ bytes: count, pinnable: count }),
  layers: z
    .array(
      z.object({
        i: count,
        name: z.string(),
        fwdUs: microseconds,
        bwdParamUs: microseconds,
        bwdFeatUs: microseconds,
        prev: z.array(count),
        next: z.array(count),
        fused: z.boolean().optional(),
        leastBytes: z.tuple([z.number().nonnegative(), z.number().nonnegative()]).optional(),
      }),
    )
    .min(1),
  tensors: z.array(tensor),
  peak: z.object({ bytes: count, at: z.string() }),
  nonTorchBytes: count,
  backwardOrder: z.array(count).optional(),
  packLayers: z.array(count).optional(),
  unpackOrder: z.array(count).optional(),
  unpackLayers: z.array(count).optional(),
  blocks: z
    .array(
      z.object({
        name: z.string(),
        call: count,
        layers: z.tuple([count, count]),
        packs: z.tuple([count, count]),
        inputs: z.array(
          z.object({
            storage: count,
            dtype: z.string(),
            shape: z.array(count),
            stride: z.array(z.number().int()),
            offset: count,
          }),
        ),
        buffers: z.array(z.string()),
        obstacle: z.string().optional(),
      }),
    )
    .optional(),
  reuse: z.object({ packs: z.array(count), tensors: z.array(tensor) }).optional(),
})

/** Reads and checks a profile; `hash` is the sha256 of its bytes, which identifies it in plans. */
export async function readProfile(path: string): Promise<{ profile: MemoryProfile; hash: string }> {
  const { value, bytes } = await readJsonFile(path, PROFILE_FILE)
  const profile = parseProfile(value, path)
  return { profile, hash: createHash('sha256').update(bytes).digest('hex') }
}

/** Turns unknown JSON into a profile whose references all resolve, or throws an error that says what is wrong. */
function parseProfile(value: unknown, path: string): MemoryProfile {
  const parsed = profileSchema.safeParse(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw invalidContents(path, PROFILE_FILE, `${issue?.path.join('.') || 'top level'}: ${issue?.message}`)
  }
  const profile = parsed.data
  const layers = new Set(profile.layers.map(({ i }) => i))
  if (layers.size !== profile.layers.length)
    throw invalidContents(path, PROFILE_FILE, 'two layers have the same number')
  const order = profile.backwardOrder
  if (order && (order.length !== layers.size || order.some((layer) => !layers.has(layer))))
    throw invalidContents(path, PROFILE_FILE, 'backwardOrder must name every layer once')
  const places = [...profile.tensors, ...(profile.reuse?.tensors ?? [])].flatMap((tensor) => [
    tensor.producer,
    ...tensor.uses,
    ...(tensor.alive ?? []),
    ...(tensor.heldUntil ? [tensor.heldUntil] : []),
  ])
  const lost = places.find(({ layer }) => !layers.has(layer))
  if (lost)
    throw invalidContents(
      path,
      PROFILE_FILE,
      `a tensor refers to layer ${lost.layer}, which is not in layers`,
    )
  const packs = profile.packLayers?.length ?? 0
  for (const list of ['packLayers', 'unpackLayers'] as const)
    if (profile[list]?.some((layer) => !layers.has(layer)))
      throw invalidContents(path, PROFILE_FILE, `${list} names a layer that is not in layers`)
  checkBlocks(path, profile)
  if (profile.unpackOrder?.some((sequence) => sequence >= packs))
    throw invalidContents(
      path,
      PROFILE_FILE,
      `unpackOrder names a pack call beyond the ${packs} of packLayers`,
    )
  if (profile.reuse?.packs.some((sequence) => sequence >= packs))
    throw invalidContents(path, PROFILE_FILE, `reuse names a pack call beyond the ${packs} of packLayers`)
  return profile
}

function checkBlocks(path: string, { blocks = [], layers, packLayers = [] }: MemoryProfile): void {
  const numbers = new Set(layers.map(({ i }) => i))
  for (const { name, layers: own, packs } of blocks) {
    if (own[0] > own[1] || !own.every((layer) => numbers.has(layer)))
      throw invalidContents(
        path,
        PROFILE_FILE,
        `block ${name} has layers ${own.join(' to ')}, which are not in layers`,
      )
    if (packs[0] > packs[1] || packs[1] > packLayers.length)
      throw invalidContents(
        path,
        PROFILE_FILE,
        `block ${name} has the pack calls ${packs.join(' to ')} of the ${packLayers.length} of packLayers`,
      )
  }
}
