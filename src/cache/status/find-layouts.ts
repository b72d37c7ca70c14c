import { compareText } from '../../model/compare-text.js'
import type { CopyUse } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'

/** Where one stripe of a version belongs, and whether it is there. */
export interface StripePlace {
  readonly index: number
  readonly node: string
  /** Also `ready` if the node has the whole version. */
  readonly state: 'ready' | 'staging' | 'missing'
  readonly copyId: string | null
}

/**
 * A version spread over several nodes, object i on node i mod N. Lost stripes are known from the remaining ones, or
 * from whole copies.
 */
export interface StripedLayout {
  readonly dataset: string
  readonly version: string
  /** In stripe order. */
  readonly nodes: readonly string[]
  readonly stripes: readonly StripePlace[]
  /** Whether every stripe is ready. */
  readonly isComplete: boolean
  /** When its last stripe was started, Unix epoch in ms. */
  readonly createdAtMs: number
}

/** Finds the layouts that stripes among `copies` belong to, by dataset, latest first. */
export function findLayouts(copies: readonly CopyUse[]): readonly StripedLayout[] {
  const striped = copies.filter(({ stripe, state }) => stripe && (state === 'ready' || state === 'staging'))
  const keepers = copies.filter(({ layouts, state }) => layouts && state === 'ready')
  if (striped.length + keepers.length === 0) return []
  const names = new Set([...striped, ...keepers].map(({ dataset }) => dataset))
  const whole = copies.filter(
    ({ stripe, state, dataset }) => !stripe && state === 'ready' && names.has(dataset),
  )
  const members = [
    ...striped.map((copy) => ({ copy, nodes: copy.stripe!.nodes })),
    ...keepers.flatMap((copy) => copy.layouts!.map((nodes) => ({ copy, nodes }))),
  ]
  const layouts = Map.groupBy(members, ({ copy: { dataset, version }, nodes }) =>
    JSON.stringify([dataset, version, nodes]),
  )
  return [...layouts.values()]
    .filter((found) => found.some(({ copy }) => copy.state === 'ready' || copy.isBeingStaged))
    .map((found) => {
      const stripes = found.map(({ copy }) => copy).filter(({ stripe }) => stripe)
      return describeLayout(found[0]!, stripes, whole)
    })
    .sort((a, b) => compareText(a.dataset, b.dataset) || b.createdAtMs - a.createdAtMs)
}

function describeLayout(
  { copy, nodes }: { readonly copy: CopyUse; readonly nodes: readonly string[] },
  members: readonly CopyUse[],
  whole: readonly CopyUse[],
): StripedLayout {
  const { dataset, version } = copy
  const stripes = nodes.map((node, index): StripePlace => {
    const candidates = [
      ...members.filter((found) => found.node === node && found.stripe!.index === index),
      ...whole.filter(
        (found) => found.dataset === dataset && found.version === version && found.node === node,
      ),
    ]
    const found = candidates.find(({ state }) => state === 'ready') ?? candidates[0]
    const state = found ? (found.state === 'ready' ? 'ready' : 'staging') : 'missing'
    return { index, node, state, copyId: found?.copyId ?? null }
  })
  return {
    dataset,
    version: version!,
    nodes,
    stripes,
    isComplete: stripes.every(({ state }) => state === 'ready'),
    createdAtMs: Math.max(copy.createdAtMs, ...members.map(({ createdAtMs }) => createdAtMs)),
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
