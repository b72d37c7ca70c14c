import { holdersOfSample, type SampleLayout } from '../../samples/plan/sample-placement.js'
import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import { type LadderCounters, RequestLadder } from './request-ladder.js'
import { StorageNode, type StorageNodeOptions, type StorageNodePlace } from './storage-node.js'

interface RemoteSourceOptions extends StorageNodeOptions {
  readonly layout: SampleLayout
  readonly nodes: readonly StorageNodePlace[]
  /** For each sample the node that holds it, if the layout does not determine it. */
  readonly placement?: Uint16Array | undefined
  /** Source to read when no storage node can deliver a sample: the last step of the ladder. */
  readonly fallback: SampleSource | undefined
  /** How long to wait for a node that is lost when nobody else has a sample, in ms. Default: not at all. */
  readonly patienceMs?: number
  readonly nowMs: () => number
  /** Called when a node stops answering, once until it answers again. */
  readonly onNodeLost?: ((message: string) => void) | undefined
}

/**
 * Samples from storage nodes. A failed request is retried once on a new connection, then on the other holders of its
 * samples, then in the fallback. Samples may come from elsewhere, but their order stays.
 */
export class RemoteSource implements SampleSource {
  readonly table: SampleTable
  readonly layout: SampleLayout
  readonly origin = 'peer'
  readonly nodeCount: number
  readonly placement: Uint16Array | undefined
  readonly #options: RemoteSourceOptions
  readonly #nodes: readonly StorageNode[]
  #notes: string[] = []
  readonly #counters: LadderCounters = {
    retries: 0,
    hedges: 0,
    failovers: 0,
    corrupt: 0,
    fallback_samples: 0,
    breakers_opened: 0,
  }

  constructor(options: RemoteSourceOptions) {
    this.table = options.table
    this.layout = options.layout
    this.placement = options.placement
    this.nodeCount = options.nodes.length
    this.#options = options
    this.#nodes = options.nodes.map((place) => new StorageNode(place, options))
    for (const node of this.#nodes) if (node.isBroken) this.#lose(node)
  }

  nodeName(node: number): string {
    return `storage node ${node} (${this.#nodes[node]?.name ?? 'not there'})`
  }

  isNodeUp(node: number): boolean {
    return !this.#nodes[node]!.isBroken
  }

  takeNotes(): readonly string[] {
    const notes = this.#notes
    this.#notes = []
    return notes
  }

  counters(): Readonly<Record<string, number>> {
    return { ...this.#counters }
  }

  read(request: ReadRequest, onSample: OnSample): Promise<void> {
    const { fallback, nowMs, patienceMs = 0 } = this.#options
    const holders = holdersOfSample(this, request.node).map((node) => this.#nodes[node]!)
    const onBroken = (node: StorageNode) => this.#lose(node)
    const options = { holders, fallback, counters: this.#counters, patienceMs, nowMs, onBroken }
    return new RequestLadder(request, onSample, options).climb()
  }

  #lose(node: StorageNode): void {
    this.#counters.breakers_opened++
    const at = this.#nodes.indexOf(node)
    const note = `dsc: the feed has lost ${this.nodeName(at)}; its samples come from elsewhere while there is such a place`
    this.#notes.push(note)
    this.#options.onNodeLost?.(note)
  }

  async close(): Promise<void> {
    for (const node of this.#nodes) await node.close()
    await this.#options.fallback?.close()
  }
}
