import type { SaveCall } from './save-calls.js'

/** How a tool moves one saved tensor to the host. */
export interface OffloadedCall {
  readonly call: SaveCall
  /** How the tool holds the tensor on the device until its copy is done: itself, a copy of it, or not at all. */
  readonly stash: 'itself' | 'copy' | 'none'
  /** The call that lets go of the stash; undefined: the first node of the backward. */
  readonly stashedUntil: SaveCall | undefined
}

/** A tool's rule: of all saved tensors, those that it moves. */
export type OffloadRule = (calls: readonly SaveCall[]) => OffloadedCall[]

/** `torch.autograd.graph.save_on_cpu`: everything that autograd saves, parameters and tiny tensors, too. */
export function saveOnCpu(calls: readonly SaveCall[]): OffloadedCall[] {
  return calls
    .filter(({ bytes }) => bytes > 0)
    .map((call) => ({ call, stash: 'none', stashedUntil: undefined }))
}

/** dsc's own recording: every saved map. */
export function moveMaps(calls: readonly SaveCall[]): OffloadedCall[] {
  return saveOnCpu(calls.filter(({ tensor }) => tensor.kind !== 'param' && tensor.kind !== 'buffer'))
}

/** Smallest tensor that torchtune and TRL move, in bytes. */
const SMALLEST_BYTES = 1024
/** So many calls later torchtune and TRL let go of a tensor whose copy was started. */
const STASH_CALLS = 5

/** torchtune's `OffloadActivations`: a weight that is saved transposed is no `nn.Parameter`, and moves. */
export function offloadAsTorchtune(calls: readonly SaveCall[]): OffloadedCall[] {
  const moved = calls.filter((call) => call.bytes >= SMALLEST_BYTES && !(isWeight(call) && call.isContiguous))
  return moved.map((call) => ({ call, stash: 'itself', stashedUntil: findRelease(call, moved) }))
}

/**
 * TRL's `OffloadActivations`: parameters stay, and so does a tensor that is saved again while its first copy is on its
 * way. Such a tensor has moved, and frees nothing.
 */
export function offloadAsTrl(calls: readonly SaveCall[]): OffloadedCall[] {
  const moved: OffloadedCall[] = []
  const stash: SaveCall[] = []
  const tracked = new Map<string, SaveCall>()
  for (const call of calls) {
    const key = keyOf(call)
    if (tracked.has(key)) {
      tracked.set(key, call) // from now on nothing forgets it
      continue
    }
    if (call.bytes < SMALLEST_BYTES || isWeight(call)) continue
    while (stash[0] && stash[0].sequence <= call.sequence - STASH_CALLS) {
      const old = stash.shift()!
      if (tracked.get(keyOf(old)) === old) tracked.delete(keyOf(old))
    }
    stash.push(call)
    tracked.set(key, call)
    const isCopied = !call.isContiguous || call.tensor.offset !== 0
    moved.push({ call, stash: isCopied ? 'copy' : 'itself', stashedUntil: undefined })
  }
  const sources = moved.map(({ call }) => call)
  return moved.map((one) => ({ ...one, stashedUntil: findRelease(one.call, sources) }))
}

/** Only the input tensors of recomputed blocks, which `sequences` saved: checkpointing with offloaded inputs. */
export function offloadInputs(sequences: ReadonlySet<number>): OffloadRule {
  return (calls) => saveOnCpu(calls.filter(({ sequence }) => sequences.has(sequence)))
}

/** A stash is looked through whenever another tensor moves. */
function findRelease(call: SaveCall, moved: readonly SaveCall[]): SaveCall | undefined {
  return moved.find(({ sequence }) => sequence >= call.sequence + STASH_CALLS)
}

/** Parameters; profiles count a parameter that several layers use as a buffer, of which only weights are transposed. */
function isWeight({ tensor, isContiguous }: SaveCall): boolean {
  return tensor.kind === 'param' || (tensor.kind === 'buffer' && !isContiguous)
}

function keyOf({ tensor }: SaveCall): string {
  return `${tensor.storage} ${tensor.offset} ${tensor.dtype}`
}
