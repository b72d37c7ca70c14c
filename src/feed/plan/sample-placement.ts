/**
 * Which storage node holds a sample.
 * `striped`: sample i is on node i mod N (the form of seed 000).
 * `full`: every node holds everything, so positions take turns and the load is even.
 */
export const SAMPLE_LAYOUTS = ['striped', 'full'] as const
export type SampleLayout = (typeof SAMPLE_LAYOUTS)[number]

/** The node (0 to nodeCount − 1) to ask for `sample`, which stands at `position` of the epoch's order. */
export function nodeOfSample(
  layout: SampleLayout,
  nodeCount: number,
  sample: number,
  position: number,
): number {
  return (layout === 'striped' ? sample : position) % nodeCount
}

/** All nodes that can answer for `sample`, the planned one first. */
export function holdersOfSample(layout: SampleLayout, nodeCount: number, planned: number): readonly number[] {
  if (layout === 'striped') return [planned]
  return Array.from({ length: nodeCount }, (_, i) => (planned + i) % nodeCount)
}
