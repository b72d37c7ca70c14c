import type { SampleLayout } from '../../samples/plan/sample-placement.js'
import type { OnSample, ReadRequest, SampleOrigin, SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { RequestTiming } from '../plan/request-cost.js'

/** Upper bounds of the duration classes of requests, in milliseconds. */
export const REQUEST_CLASSES_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000] as const

/** Counts of requests to one storage node. */
export interface NodeMeter {
  requests: number
  requestMs: number
  /** Number of requests that took at most REQUEST_CLASSES_MS[i], but longer than the class below. */
  readonly classes: number[]
  /** Bytes of samples in its share, by where they finally came from. */
  readonly bytes: Map<SampleOrigin, number>
  /** When the node's newest samples arrived, in ms of the same clock. */
  sentAtMs: number
}

/** Measures one request while it is answered. */
class RequestWatch {
  readonly askedAtMs: number
  readonly #meter: NodeMeter
  readonly #nowMs: () => number
  #silentSinceMs: number
  #bytes = 0
  #hasCome = false
  /** Whether only its own node has answered, and in full. */
  #isPlain: boolean
  #first: { readonly atMs: number; readonly bytes: number } | undefined

  constructor(meter: NodeMeter, nowMs: () => number) {
    this.askedAtMs = nowMs()
    this.#meter = meter
    this.#nowMs = nowMs
    this.#silentSinceMs = this.askedAtMs
    this.#isPlain = meter.requests > 0 // the first one also opened the connection
  }

  /** Records a sample of `length` bytes from its own node. */
  take(length: number): void {
    this.#bytes += length
    if (this.#hasCome) return
    this.#hasCome = true
    this.#silentSinceMs = this.#meter.sentAtMs
    // Samples that arrive together are reported one after the other; the first arrival includes all of them.
    queueMicrotask(() => {
      this.#first = { atMs: this.#nowMs(), bytes: this.#bytes }
    })
  }

  /** Discards the measurement: a sample was lost or came from elsewhere, so the time says nothing about its node. */
  spoil(): void {
    this.#isPlain = false
  }

  timing(lastAtMs: number): RequestTiming | undefined {
    if (!this.#isPlain || !this.#first) return undefined
    return {
      askedAtMs: this.askedAtMs,
      silentSinceMs: this.#silentSinceMs,
      firstAtMs: this.#first.atMs,
      lastAtMs,
      firstBytes: this.#first.bytes,
      bytes: this.#bytes,
    }
  }
}

interface MeteredSourceOptions {
  readonly nowMs: () => number
  /** Called when a single node has answered in full. */
  readonly onTimed: (timing: RequestTiming) => void
}

/** Wraps a source and counts its traffic, with one meter per node. */
export class MeteredSource implements SampleSource {
  readonly table: SampleTable
  readonly layout: SampleLayout
  readonly origin: SampleOrigin
  readonly nodeCount: number
  readonly placement: Uint16Array | undefined
  readonly meters: readonly NodeMeter[]
  readonly expect: SampleSource['expect']
  readonly #source: SampleSource
  readonly #options: MeteredSourceOptions

  constructor(source: SampleSource, options: MeteredSourceOptions) {
    this.table = source.table
    this.layout = source.layout
    this.origin = source.origin
    this.nodeCount = source.nodeCount
    this.placement = source.placement
    this.expect = source.expect?.bind(source)
    this.#source = source
    this.#options = options
    this.meters = Array.from({ length: source.nodeCount }, () => ({
      requests: 0,
      requestMs: 0,
      classes: REQUEST_CLASSES_MS.map(() => 0),
      bytes: new Map<SampleOrigin, number>(),
      sentAtMs: Number.NEGATIVE_INFINITY,
    }))
  }

  nodeName(node: number): string {
    return this.#source.nodeName(node)
  }

  isNodeUp(node: number): boolean {
    return this.#source.isNodeUp?.(node) ?? true
  }

  takeNotes(): readonly string[] {
    return this.#source.takeNotes?.() ?? []
  }

  counters(): Readonly<Record<string, number>> {
    return this.#source.counters?.() ?? {}
  }

  async read(request: ReadRequest, onSample: OnSample): Promise<void> {
    const { nowMs, onTimed } = this.#options
    const meter = this.meters[request.node]!
    const watch = new RequestWatch(meter, nowMs)
    await this.#source.read(request, (i, status, origin = this.origin) => {
      const length = status === 'ok' ? this.table.lengths[request.samples[i]!]! : 0
      if (status === 'ok') meter.bytes.set(origin, (meter.bytes.get(origin) ?? 0) + length)
      if (status !== 'ok' || origin !== this.origin) watch.spoil()
      watch.take(length)
      onSample(i, status, origin)
    })
    const lastAtMs = nowMs()
    const timing = watch.timing(lastAtMs)
    if (timing) onTimed(timing)
    count(meter, lastAtMs - watch.askedAtMs, lastAtMs)
  }

  close(): Promise<void> {
    return this.#source.close()
  }
}

function count(meter: NodeMeter, tookMs: number, lastAtMs: number): void {
  meter.sentAtMs = lastAtMs
  meter.requests++
  meter.requestMs += tookMs
  const at = REQUEST_CLASSES_MS.findIndex((bound) => tookMs <= bound)
  if (at >= 0) meter.classes[at]!++
}
