import type { SampleOrigin, SampleSource } from './sample-source.js'

/** Upper bounds of the classes that requests are counted in, in milliseconds. */
export const REQUEST_CLASSES_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000] as const

/** What one storage node was asked for. */
export interface NodeMeter {
  requests: number
  requestMs: number
  /** Requests that took at most REQUEST_CLASSES_MS[i], and none of the classes below. */
  readonly classes: number[]
  /** Bytes of samples in its share, by where they came from in the end. */
  readonly bytes: Map<SampleOrigin, number>
}

/** `source`, with one meter per node that counts what goes through it. */
export function meterSource(
  source: SampleSource,
  nowMs: () => number,
): { readonly source: SampleSource; readonly meters: readonly NodeMeter[] } {
  const meters = Array.from({ length: source.nodeCount }, (): NodeMeter => {
    const classes = REQUEST_CLASSES_MS.map(() => 0)
    return { requests: 0, requestMs: 0, classes, bytes: new Map() }
  })
  const { lengths } = source.table
  const metered: SampleSource = {
    ...source,
    async read(request, onSample) {
      const meter = meters[request.node]!
      const startMs = nowMs()
      await source.read(request, (i, status, origin = source.origin) => {
        if (status === 'ok')
          meter.bytes.set(origin, (meter.bytes.get(origin) ?? 0) + lengths[request.samples[i]!]!)
        onSample(i, status, origin)
      })
      const tookMs = nowMs() - startMs
      meter.requests++
      meter.requestMs += tookMs
      const at = REQUEST_CLASSES_MS.findIndex((bound) => tookMs <= bound)
      if (at >= 0) meter.classes[at]!++
    },
  }
  return { source: metered, meters }
}
