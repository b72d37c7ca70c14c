import { setTimeout as sleep } from 'node:timers/promises'
import type { OnSample, ReadRequest, SampleSource } from '../samples/sample-source.js'

interface ShapeOptions {
  /** Nodes that share the samples; each has all of them. */
  readonly nodes: number
  /** Time before a request's first byte, regardless of concurrent requests, ms. */
  readonly fixedMs: number
  /** Rate of each node, shared by its requests. */
  readonly bytesPerMs: number
}

/** Length of the slices in which a node sends, ms: timers are no finer than 1 ms. */
const SLICE_MS = 2

/**
 * A local source that answers like `nodes` remote ones: requests wait concurrently and are sent one after the other.
 */
export function shapedSource(
  source: SampleSource,
  { nodes, fixedMs, bytesPerMs }: ShapeOptions,
): SampleSource {
  const { table } = source
  const freeAtMs = new Array<number>(nodes).fill(0)
  return {
    layout: 'full',
    origin: 'peer',
    table,
    nodeCount: nodes,
    nodeName: (node) => `shaped node ${node}`,
    async read(request: ReadRequest, onSample: OnSample) {
      const { node, samples, offsets } = request
      await sleep(fixedMs)
      for (let at = 0; at < samples.length; ) {
        let end = at
        let bytes = 0
        while (end < samples.length && bytes < SLICE_MS * bytesPerMs) bytes += table.lengths[samples[end++]!]!
        const startMs = Math.max(performance.now(), freeAtMs[node]!)
        freeAtMs[node] = startMs + bytes / bytesPerMs
        await sleep(Math.max(0, freeAtMs[node]! - performance.now()))
        const from = at
        const part = { ...request, node: 0, samples: samples.slice(at, end), offsets: offsets.slice(at, end) }
        await source.read(part, (i, status, origin) => onSample(from + i, status, origin))
        at = end
      }
    },
    close: () => source.close(),
  }
}
