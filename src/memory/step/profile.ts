/** Format version of profile files. Bump it when a reader of the old format would misread the new one. */
const PROFILE_VERSION = 1

/** Where in a training step something happens. `bwd_param` = gradient of the layer's parameters. */
export type StepPhase = 'fwd' | 'bwd_param' | 'bwd_feat'

/** The role of a tensor. Persistent kinds (param, buffer, opt_state) live through every step. */
export type TensorKind =
  | 'feature'
  | 'feature_grad'
  | 'param'
  | 'param_grad'
  | 'opt_state'
  | 'buffer'
  | 'workspace'

/** One use or birth of a tensor. */
export interface StepPlace {
  readonly layer: number
  readonly phase: StepPhase
}

/** One layer of iteration 1, in order of execution; times in microseconds. */
export interface ProfiledLayer {
  readonly i: number
  readonly name: string
  readonly fwdUs: number
  readonly bwdParamUs: number
  readonly bwdFeatUs: number
  readonly prev: readonly number[]
  readonly next: readonly number[]
  /** Whether one kernel computes both gradients, so that a map read for the first lives through the second. */
  readonly fused?: boolean | undefined
  /** Peaks of its forward and backward in bytes, where every saved map is on the host and each asking call gets a copy. */
  readonly leastBytes?: readonly [number, number] | undefined
}

/** One tensor of iteration 1. Tensors with one `storage` share memory and move together. */
export interface ProfiledTensor {
  readonly id: number
  readonly kind: TensorKind
  /** For a parameter that may leave the device, and for a gradient: the parameter's name in the model. */
  readonly name?: string | undefined
  /** Size in bytes of the tensor's storage (views of one storage name the same size). */
  readonly bytes: number
  readonly dtype: string
  readonly shape: readonly number[]
  readonly storage: number
  /** Offset into the storage and strides, in elements. */
  readonly offset: number
  readonly stride: readonly number[]
  readonly producer: StepPlace
  readonly uses: readonly StepPlace[]
  /** Sequence numbers of the saved-tensor pack calls that saved it, and the positions of their unpack calls. */
  readonly pack: readonly number[]
  readonly unpack: readonly number[]
  readonly refs: number
  /** When its memory really begins and ends, if that differs from producer and last use. */
  readonly alive?: readonly [StepPlace, StepPlace] | undefined
  /** Last forward place at which something other than autograd still holds it. */
  readonly heldUntil?: StepPlace | undefined
  /** Whether its memory, once it is back, lives on: as a gradient, or as a storage that a checkpoint saves again. */
  readonly livesOn?: boolean | undefined
  /** The line of the model's code that saved it, for people: "models/gpt.py:42". */
  readonly line?: string | undefined
}

/** Recording of iteration 1 of a run (`dsc.memory.profile` in Python): the planner's only input. */
export interface MemoryProfile {
  readonly v: typeof PROFILE_VERSION
  readonly kind: 'dsc.mem.profile'
  /** sha256 of the pack sequence, and of the model's names, shapes and types. */
  readonly signature: string
  readonly model: string
  /** Bandwidths in GB/s (1e9 bytes per second) as measured; `bothGBs` = sum of both directions at once. */
  readonly device: {
    readonly name: string
    readonly bytes: number
    readonly d2hGBs: number
    readonly h2dGBs: number
    readonly bothGBs: number
    readonly copyLatencyUs: number
  }
  readonly host: { readonly bytes: number; readonly pinnable: number }
  readonly layers: readonly ProfiledLayer[]
  readonly tensors: readonly ProfiledTensor[]
  readonly peak: { readonly bytes: number; readonly at: string }
  readonly nonTorchBytes: number
  /** Layers in order of their backward; default: the reverse of the forward order. */
  readonly backwardOrder?: readonly number[] | undefined
  /** Layer of every pack call, and the pack sequence number of every unpack call, in order. */
  readonly packLayers?: readonly number[] | undefined
  readonly unpackOrder?: readonly number[] | undefined
  /** Layer whose backward makes each unpack call; default: the layer of its pack call. */
  readonly unpackLayers?: readonly number[] | undefined
  /**
   * Calls of modules that could run their forward again instead of saving; they nest. Absent: found by layers' names.
   */
  readonly blocks?: readonly RecordedBlock[] | undefined
  /** The same step with every feature gradient written into the map that dies under it, if there is one. */
  readonly reuse?: ReusingStep | undefined
}

/** One call of a module with modules inside. */
export interface RecordedBlock {
  readonly name: string
  /** Number of earlier calls of this module in the step. */
  readonly call: number
  /** First and last layer, both inside. */
  readonly layers: readonly [number, number]
  /** Sequence numbers of the first pack call inside, and of the first after it. */
  readonly packs: readonly [number, number]
  /** Its input tensors, in the order in which they are saved for its second run. */
  readonly inputs: readonly BlockInput[]
  /** Names of the buffers and other attributes that its forward changes: its second run must not change them. */
  readonly buffers: readonly string[]
  /** Why it cannot run again. */
  readonly obstacle?: string | undefined
}

/** A view of a storage that is an input of a block. */
export type BlockInput = Pick<ProfiledTensor, 'storage' | 'dtype' | 'shape' | 'stride' | 'offset'>

/** A step in which dead maps live on as feature gradients (seed 002, S6). */
interface ReusingStep {
  /** Sequence numbers of the pack calls that saved these maps. */
  readonly packs: readonly number[]
  /** Replaces the profile's `tensors`. Layers, times and calls are the same. */
  readonly tensors: readonly ProfiledTensor[]
}
