import type { RequestTiming } from '../plan/request-cost.js'
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
  /** When the newest samples of the node came, ms of the same clock. */
  sentAtMs: number
}

/** `source`, with one meter per node that counts what goes through it. `onTimed`: a node alone has answered in full. */
export function meterSource(
  source: SampleSource,
  nowMs: () => number,
  onTimed: (timing: RequestTiming) => void,
): { readonly source: SampleSource; readonly meters: readonly NodeMeter[] } {
  const meters = Array.from({ length: source.nodeCount }, (): NodeMeter => {
    const classes = REQUEST_CLASSES_MS.map(() => 0)
    return { requests: 0, requestMs: 0, classes, bytes: new Map(), sentAtMs: Number.NEGATIVE_INFINITY }
  })
  const { lengths } = source.table
  const metered: SampleSource = {
    ...source,
    async read(request, onSample) {
      const meter = meters[request.node]!
      const askedAtMs = nowMs()
      let silentSinceMs = askedAtMs
      let bytes = 0
      let first: { readonly atMs: number; readonly bytes: number } | undefined
      let hasCome = false
      let isPlain = meter.requests > 0 // the first one also made the connection
      await source.read(request, (i, status, origin = source.origin) => {
        if (status === 'ok') {
          const length = lengths[request.samples[i]!]!
          bytes += length
          meter.bytes.set(origin, (meter.bytes.get(origin) ?? 0) + length)
        }
        if (status !== 'ok' || origin !== source.origin) isPlain = false
        if (!hasCome) {
          hasCome = true
          silentSinceMs = meter.sentAtMs
          // Samples that come together are told one after the other; the first arrival is all of them.
          queueMicrotask(() => {
            first = { atMs: nowMs(), bytes }
          })
        }
        onSample(i, status, origin)
      })
      const lastAtMs = nowMs()
      const tookMs = lastAtMs - askedAtMs
      if (isPlain && first) {
        const { atMs: firstAtMs, bytes: firstBytes } = first
        onTimed({ askedAtMs, silentSinceMs, firstAtMs, lastAtMs, firstBytes, bytes })
      }
      meter.sentAtMs = lastAtMs
      meter.requests++
      meter.requestMs += tookMs
      const at = REQUEST_CLASSES_MS.findIndex((bound) => tookMs <= bound)
      if (at >= 0) meter.classes[at]!++
    },
  }
  return { source: metered, meters }
}
