/** A number of answers or of sent bytes. */
export interface GatewayCount {
  readonly name: 'dsc_gateway_requests_total' | 'dsc_gateway_sent_bytes_total' | 'dsc_gateway_failures_total'
  readonly labels: Readonly<Record<string, string>>
  value: number
}

/** Delay before new counts are reported, in ms. */
const TELL_MS = 20

/** Sums up a gateway thread's answers and reports them in batches: finding a series takes as long as opening a file. */
export class GatewayCounts {
  readonly #tell: (counts: readonly GatewayCount[]) => void
  #counts = new Map<string, GatewayCount>()
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (counts: readonly GatewayCount[]) => void) {
    this.#tell = tell
  }

  answered(operation: string, status: number): void {
    const key = `${operation} ${status}`
    const known = this.#counts.get(key)
    if (known) known.value += 1
    else
      this.#add(key, {
        name: 'dsc_gateway_requests_total',
        labels: { operation, status: String(status) },
        value: 1,
      })
  }

  sent({ from, bytes }: { readonly from: string; readonly bytes: number }): void {
    const known = this.#counts.get(from)
    if (known) known.value += bytes
    else this.#add(from, { name: 'dsc_gateway_sent_bytes_total', labels: { from }, value: bytes })
  }

  failed(dataset: string, code: string): void {
    const key = `${dataset} ${code}`
    const known = this.#counts.get(key)
    if (known) known.value += 1
    else this.#add(key, { name: 'dsc_gateway_failures_total', labels: { dataset, code }, value: 1 })
  }

  /** Reports all pending counts at once. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    if (counts.length > 0) this.#tell(counts)
  }

  #add(key: string, count: GatewayCount): void {
    this.#counts.set(key, count)
    this.#timer ??= setTimeout(() => this.flush(), TELL_MS).unref()
  }
}
