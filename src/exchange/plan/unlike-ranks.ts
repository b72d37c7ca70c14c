import type { Gradient } from './gradient.js'

/** The gradients of a job, measured (a profile) or modelled (a model file and a backward time). */
export interface Profile {
  readonly model: string
  /** E: mean seconds of one backward pass. */
  readonly backwardSeconds: number
  /** Bytes per value of the gradients in the trainer. */
  readonly gradientBytes: number
  /** In backward order. */
  readonly gradients: readonly Gradient[]
}

/** One profile for ranks of different speed, and the cost of their difference. */
export interface JoinedProfile extends Profile {
  /** E of each kind of rank, in the order given. */
  readonly kindSeconds: readonly number[]
}

/** Two kinds of ranks with different gradients: the name, and what is wrong with it. */
interface ProfileMismatch {
  readonly mismatch: string
}

/**
 * Joins the profiles of ranks of different speed, one for each kind. A bucket leaves when its last gradient is ready on
 * the last rank, so a gradient counts as ready when the slowest kind has it, in the order of these times.
 */
export function joinProfiles(profiles: readonly Profile[]): JoinedProfile | ProfileMismatch {
  const [first, ...others] = profiles
  if (!first) return { mismatch: 'there is no profile' }
  const readySeconds = new Map(first.gradients.map(({ name, readySeconds }) => [name, readySeconds]))
  for (const other of others) {
    const mismatch = findMismatch(first, other)
    if (mismatch !== undefined) return { mismatch }
    for (const gradient of other.gradients)
      readySeconds.set(gradient.name, Math.max(readySeconds.get(gradient.name)!, gradient.readySeconds))
  }
  return {
    ...first,
    backwardSeconds: Math.max(...profiles.map(({ backwardSeconds }) => backwardSeconds)),
    kindSeconds: profiles.map(({ backwardSeconds }) => backwardSeconds),
    gradients: first.gradients
      .map((gradient) => ({ ...gradient, readySeconds: readySeconds.get(gradient.name)! }))
      .sort((a, b) => a.readySeconds - b.readySeconds),
  }
}

function findMismatch(one: Profile, other: Profile): string | undefined {
  const sizes = new Map(other.gradients.map(({ name, elements }) => [name, elements]))
  for (const { name, elements } of one.gradients) {
    const found = sizes.get(name)
    if (found === undefined) return `${name} is missing in another`
    if (found !== elements) return `${name} has ${elements} values in one and ${found} in another`
    sizes.delete(name)
  }
  const [extra] = sizes.keys()
  return extra === undefined ? undefined : `${extra} is missing in one`
}

/**
 * Explains the cost of unlike ranks, which no exchange avoids, and the shares of the batch that would end it. One kind:
 * undefined.
 */
export function explainUnlikeRanks(kindSeconds: readonly number[]): string | undefined {
  const [fastest, slowest] = [Math.min(...kindSeconds), Math.max(...kindSeconds)]
  if (!(slowest > fastest * 1.02)) return undefined
  const total = kindSeconds.reduce((sum, seconds) => sum + 1 / seconds, 0)
  const shares = kindSeconds.map((seconds) => (kindSeconds.length / seconds / total).toFixed(2))
  const ms = (seconds: number) => `${(seconds * 1000).toFixed(0)} ms`
  return `Backward takes ${kindSeconds.map(ms).join(', ')}: the buckets are planned for the slowest, and the fastest waits ${ms(slowest - fastest)} in every step whatever is exchanged. Batches of ${shares.join(', ')} times the present one would end it.`
}
