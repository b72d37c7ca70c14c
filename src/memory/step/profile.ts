import { z } from 'zod'
import { count, list, microseconds } from '../../answers/fields.js'

/** Two values of one kind. */
const pair = <Element extends z.ZodType>(element: Element) => z.tuple([element, element]).readonly()

const speed = z.number().positive()

/** Where in a training step something happens. `bwd_param` = gradient of the layer's parameters. */
const phase = z.enum(['fwd', 'bwd_param', 'bwd_feat'])

/** The role of a tensor. Persistent kinds (param, buffer, opt_state) live through every step. */
export const tensorKind = z.enum([
  'feature',
  'feature_grad',
  'param',
  'param_grad',
  'opt_state',
  'buffer',
  'workspace',
])

/** One use or birth of a tensor. */
const place = z.object({ layer: count, phase }).readonly()

const layer = z
  .object({
    i: count,
    name: z.string(),
    fwdUs: microseconds,
    bwdParamUs: microseconds,
    bwdFeatUs: microseconds,
    prev: list(count),
    next: list(count),
    /** Whether one kernel computes both gradients, so that a map read for the first lives through the second. */
    fused: z.boolean().optional(),
    /** Peaks of its forward and backward in bytes, where every saved map is on the host and each asking call gets a copy. */
    leastBytes: pair(z.number().nonnegative()).optional(),
  })
  .readonly()

/** A view of a storage. */
const view = {
  dtype: z.string(),
  shape: list(count),
  storage: count,
  /** Offset into the storage and strides, in elements. */
  offset: count,
  stride: list(z.int()),
}

const tensor = z
  .object({
    id: count,
    kind: tensorKind,
    /** For a parameter that may leave the device, and for a gradient: the parameter's name in the model. */
    name: z.string().optional(),
    /** Size in bytes of the tensor's storage (views of one storage name the same size). */
    bytes: count,
    ...view,
    producer: place,
    uses: list(place),
    /** Sequence numbers of the saved-tensor pack calls that saved it, and the positions of their unpack calls. */
    pack: list(count),
    unpack: list(count),
    refs: count,
    /** When its memory really begins and ends, if that differs from producer and last use. */
    alive: pair(place).optional(),
    /** Last forward place at which something other than autograd still holds it. */
    heldUntil: place.optional(),
    /** Whether its memory, once it is back, lives on: as a gradient, or as a storage that a checkpoint saves again. */
    livesOn: z.boolean().optional(),
    /** The line of the model's code that saved it, for people: "models/gpt.py:42". */
    line: z.string().optional(),
  })
  .readonly()

const block = z
  .object({
    name: z.string(),
    /** Number of earlier calls of this module in the step. */
    call: count,
    /** First and last layer, both inside. */
    layers: pair(count),
    /** Sequence numbers of the first pack call inside, and of the first after it. */
    packs: pair(count),
    /** Its input tensors, in the order in which they are saved for its second run. */
    inputs: list(z.object(view).readonly()),
    /** Names of the buffers and other attributes that its forward changes: its second run must not change them. */
    buffers: list(z.string()),
    /** Why it cannot run again. */
    obstacle: z.string().optional(),
  })
  .readonly()

/** The form of profile files. Bump `v` when a reader of the old format would misread the new one. */
export const profileSchema = z
  .object({
    v: z.literal(1),
    kind: z.literal('dsc.mem.profile'),
    /** sha256 of the pack sequence, and of the model's names, shapes and types. */
    signature: z.string(),
    model: z.string(),
    /** Bandwidths in GB/s (1e9 bytes per second) as measured; `bothGBs` = sum of both directions at once. */
    device: z
      .object({
        name: z.string(),
        bytes: count,
        d2hGBs: speed,
        h2dGBs: speed,
        bothGBs: speed,
        copyLatencyUs: microseconds,
        /** Microseconds that hooks need to copy a tensor of a few bytes out and in. CPUs only: a GPU hides it. */
        hookUs: microseconds.optional(),
      })
      .readonly(),
    host: z.object({ bytes: count, pinnable: count }).readonly(),
    layers: z.array(layer).min(1).readonly(),
    tensors: list(tensor),
    peak: z.object({ bytes: count, at: z.string() }).readonly(),
    nonTorchBytes: count,
    /** Layers in order of their backward; default: the reverse of the forward order. */
    backwardOrder: list(count).optional(),
    /** Layer of every pack call, and the pack sequence number of every unpack call, in order. */
    packLayers: list(count).optional(),
    unpackOrder: list(count).optional(),
    /** Layer whose backward makes each unpack call; default: the layer of its pack call. */
    unpackLayers: list(count).optional(),
    /** Calls of modules that could run their forward again instead of saving; they nest. Absent: found by layers' names. */
    blocks: list(block).optional(),
    /**
     * The same step with every feature gradient written into the map that dies under it, if there is one (seed 002, S6):
     * the pack calls that saved these maps, and what replaces `tensors`.
     */
    reuse: z
      .object({ packs: list(count), tensors: list(tensor) })
      .readonly()
      .optional(),
  })
  .readonly()

export type StepPhase = z.infer<typeof phase>
export type TensorKind = z.infer<typeof tensorKind>
export type StepPlace = z.infer<typeof place>
/** One layer of iteration 1, in order of execution; times in microseconds. */
export type ProfiledLayer = z.infer<typeof layer>
/** One tensor of iteration 1. Tensors with one `storage` share memory and move together. */
export type ProfiledTensor = z.infer<typeof tensor>
/** One call of a module with modules inside. */
export type RecordedBlock = z.infer<typeof block>
/** A view of a storage that is an input of a block. */
export type BlockInput = RecordedBlock['inputs'][number]
/** Recording of iteration 1 of a run (`dsc.memory.profile` in Python): the planner's only input. */
export type MemoryProfile = z.infer<typeof profileSchema>
