/**
 * Which storage node holds a sample.
 * `striped`: sample i is on node i mod N (as in seed 000).
 * `full`: every node holds everything, so positions take turns and the load is even.
 */
export const SAMPLE_LAYOUTS = ['striped', 'full'] as const
/** How samples are spread over nodes. */
export type SampleLayout = (typeof SAMPLE_LAYOUTS)[number]

/** How the samples of a source lie on its nodes. */
export interface SamplePlacement {
  readonly layout: SampleLayout
  readonly nodeCount: number
  /** For each sample the node that holds it, if the layout does not determine it. */
  readonly placement?: Uint16Array | undefined
}

/** Returns the node (0 to nodeCount − 1) to ask for `sample`, at `position` of the epoch's order. */
export function nodeOfSample(placed: SamplePlacement, sample: number, position: number): number {
  const { layout, nodeCount, placement } = placed
  return placement ? placement[sample]! : (layout === 'striped' ? sample : position) % nodeCount
}

/** Returns all nodes that can deliver a sample whose node is `planned`, that one first. */
export function holdersOfSample(placed: SamplePlacement, planned: number): readonly number[] {
  const { layout, nodeCount } = placed
  if (layout === 'striped') return [planned]
  return Array.from({ length: nodeCount }, (_, i) => (planned + i) % nodeCount)
}
