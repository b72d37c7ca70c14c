import type { MemoryProfile, TensorKind } from '../memory/step/profile.js'

const PERSISTENT: readonly TensorKind[] = ['param', 'buffer', 'opt_state', 'param_grad']

/** Bytes other than activations: studies define budgets as fractions of the rest. */
export function sumPersistentBytes(profile: MemoryProfile): number {
  return profile.tensors.reduce((sum, { kind, bytes }) => sum + (PERSISTENT.includes(kind) ? bytes : 0), 0)
}
