import type { CopyUse } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'

/** Where one stripe of a version is to be, and whether it is there. */
export interface StripePlace {
  readonly index: number
  readonly node: string
  /** `ready` also where the node has the whole version. */
  readonly state: 'ready' | 'staging' | 'missing'
  readonly copyId: string | null
}

/** A version that lies on several nodes, object i on node i mod N. Lost stripes are told by those that are left. */
export interface StripedLayout {
  readonly dataset: string
  readonly version: string
  /** In the order of their stripes. */
  readonly nodes: readonly string[]
  readonly stripes: readonly StripePlace[]
  /** Whether every stripe is ready. */
  readonly isComplete: boolean
  /** When its last stripe was begun, Unix epoch in ms. */
  readonly createdAtMs: number
}

/** Finds the layouts that stripes among `copies` belong to, by dataset, the latest first. */
export function findLayouts(copies: readonly CopyUse[]): readonly StripedLayout[] {
  const striped = copies.filter(({ stripe, state }) => stripe && (state === 'ready' || state === 'staging'))
  if (striped.length === 0) return []
  const names = new Set(striped.map(({ dataset }) => dataset))
  const whole = copies.filter(
    ({ stripe, state, dataset }) => !stripe && state === 'ready' && names.has(dataset),
  )
  const layouts = Map.groupBy(striped, ({ dataset, version, stripe }) =>
    JSON.stringify([dataset, version, stripe!.nodes]),
  )
  return [...layouts.values()]
    .filter((members) => members.some(({ state, isBeingStaged }) => state === 'ready' || isBeingStaged))
    .map((members) => describeLayout(members, whole))
    .sort((a, b) => compareText(a.dataset, b.dataset) || b.createdAtMs - a.createdAtMs)
}

function describeLayout(members: readonly CopyUse[], whole: readonly CopyUse[]): StripedLayout {
  const { dataset, version, stripe } = members[0]!
  const nodes = stripe!.nodes
  const stripes = nodes.map((node, index): StripePlace => {
    const candidates = [
      ...members.filter((copy) => copy.node === node && copy.stripe!.index === index),
      ...whole.filter((copy) => copy.dataset === dataset && copy.version === version && copy.node === node),
    ]
    const found = candidates.find(({ state }) => state === 'ready') ?? candidates[0]
    const state = found ? (found.state === 'ready' ? 'ready' : 'staging') : 'missing'
    return { index, node, state, copyId: found?.copyId ?? null }
  })
  return {
    ...{ dataset, version: version!, nodes, stripes },
    isComplete: stripes.every(({ state }) => state === 'ready'),
    createdAtMs: Math.max(...members.map(({ createdAtMs }) => createdAtMs)),
  }
}

/** `2 of 3 stripes, 2/3 on gpu-02 is missing`. */
export function formatLayout({ stripes, nodes }: StripedLayout): string {
  const ready = stripes.filter(({ state }) => state === 'ready').length
  const others = stripes
    .filter(({ state }) => state !== 'ready')
    .map(
      ({ index, node, state }) =>
        `, ${index + 1}/${nodes.length} on ${node} is ${state === 'staging' ? 'being staged' : 'missing'}`,
    )
  return `${ready} of ${formatCount(nodes.length, 'stripe')}${others.join('')}`
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
