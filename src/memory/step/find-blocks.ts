import type { MemoryProfile, RecordedBlock } from './profile.js'

/** Consecutive layers of one part of the model, around which `checkpoint()` can be put. */
export interface Block {
  /** The module's name, for example `transformer.h.3`. */
  readonly name: string
  /** Layers, in order of execution; at least 3. */
  readonly layers: readonly number[]
  /** In recorded profiles: the call of a module that this block is. */
  readonly recorded?: RecordedBlock | undefined
}

/** Fewer layers are not worth a recomputation: there is nothing between input and output. */
const MIN_LAYERS = 3

/**
 * Finds a model's blocks by the names of its layers: the repeated ones (`h.0`, `h.1`, …), as deep as they repeat and
 * have at least 3 layers, and the parts at the top that do not repeat. Blocks do not overlap. In a recorded profile
 * they are calls of modules, except those that cannot run again.
 */
export function findBlocks(profile: MemoryProfile): Block[] {
  const named = profile.layers.map(({ i, name }, at) => ({
    layer: i,
    at,
    // Operations between two modules are recorded as `after` the first, and mostly belong to the same part.
    path: name.replace(/^(after|before) /, '').split('.'),
  }))
  const parts = splitPart(named, 1).sort((a, b) => a.layers[0]! - b.layers[0]!)
  if (!profile.blocks) return parts
  const names = new Set(parts.map(({ name }) => name))
  return listCalls(profile).filter(({ name }) => names.has(name))
}

/** All calls of a recorded profile that can run again, including nested ones, in order of their beginning. */
export function listCalls(profile: MemoryProfile): Block[] {
  const order = new Map(profile.layers.map(({ i }, at) => [i, at]))
  return (profile.blocks ?? [])
    .filter(({ obstacle }) => obstacle === undefined)
    .map((recorded) => {
      const [first, last] = recorded.layers.map((layer) => order.get(layer)!) as [number, number]
      return {
        name: recorded.name,
        layers: profile.layers.slice(first, last + 1).map(({ i }) => i),
        recorded,
      }
    })
}

interface Named {
  readonly layer: number
  readonly at: number
  readonly path: readonly string[]
}

/**
 * Splits layers with the same name up to `depth − 1` into blocks with the same name up to `depth`, or deeper if those
 * repeat.
 */
function splitPart(part: readonly Named[], depth: number): Block[] {
  const children = Map.groupBy(
    part.filter(({ path }) => path.length > depth),
    ({ path }) => path.slice(0, depth).join('.'),
  )
  return [...children].flatMap(([name, child]) => {
    if (child.length < MIN_LAYERS) return []
    const inner = splitPart(child, depth + 1)
    const covered = inner.reduce((sum, { layers }) => sum + layers.length, 0)
    if (inner.length >= 2 && repeats(inner, depth) && 2 * covered >= child.length) return inner
    if (inner.length === 1 && inner[0]!.layers.length === child.length) return inner
    return follow(child) ? [{ name, layers: child.map(({ layer }) => layer) }] : []
  })
}

/** Whether blocks are numbered below `depth`, and not the parts of one block. */
function repeats(blocks: readonly Block[], depth: number): boolean {
  return blocks.filter(({ name }) => name.split('.').slice(depth).some(isNumber)).length >= 2
}

function isNumber(word: string): boolean {
  return /^\d+$/.test(word)
}

function follow(child: readonly Named[]): boolean {
  return child.at(-1)!.at - child[0]!.at === child.length - 1
}
