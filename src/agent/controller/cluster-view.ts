import type { CopyUse } from '../../model/copy.js'
import { agentUrls } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { chooseNodes, type Waiting } from './choose-nodes.js'
import type { NodeObject, PodObject } from './cluster-objects.js'
import type { Quantities } from './pod-needs.js'

/** Pods that were told where their data is, and that the scheduler has not placed yet. */
interface Expected {
  readonly nodes: readonly string[]
  readonly requests: Quantities
  readonly count: number
  /** Datasets that they find there, or will. */
  readonly datasets: readonly string[]
  /** They wait for more than their data: their resources are kept from others like them alone. */
  readonly isPrefetch: boolean
}

type ViewedRecord = Pick<RecordStore, 'listNodes' | 'listCopies' | 'nowMs'>

/** Resources by node. */
type Sums = Map<string, Record<string, number>>

/** The cluster at one moment: which nodes have agents, data, and free resources. */
export class ClusterView {
  readonly #record: ViewedRecord
  readonly #expected = new Map<string, Expected>()
  readonly #copies = new Map<string, Promise<readonly CopyUse[]>>()
  #nodes: readonly NodeObject[] = []
  #used: Sums = new Map()
  /** Resources that jobs will use which wait for more than their data. */
  #queued: Sums = new Map()
  /** How many jobs expect a dataset, by node and dataset. */
  #coming = new Map<string, Map<string, number>>()
  #urls: ReadonlyMap<string, string> = new Map()
  #freeBytes: ReadonlyMap<string, number> = new Map()

  constructor(record: ViewedRecord) {
    this.#record = record
  }

  /** Looks at the cluster again. */
  async look(nodes: Iterable<NodeObject>, pods: Iterable<PodObject>): Promise<void> {
    const entries = await this.#record.listNodes()
    this.#copies.clear()
    this.#urls = agentUrls(entries, this.#record.nowMs())
    this.#freeBytes = new Map(entries.map(({ node, disk }) => [node, disk.freeBytes]))
    this.#nodes = [...nodes].filter(({ name }) => this.#urls.has(name))
    this.#used = new Map()
    this.#queued = new Map()
    this.#coming = new Map()
    for (const { node, requests } of pods) if (node !== undefined) add(this.#used, node, requests, 1)
    for (const expected of this.#expected.values()) this.#countExpected(expected, 1)
  }

  /** URL of the agent of a node; undefined: none reports. */
  findAgent(node: string): string | undefined {
    return this.#urls.get(node)
  }

  /** The copies of a dataset, on all nodes. */
  listCopies(dataset: string): Promise<readonly CopyUse[]> {
    const known = this.#copies.get(dataset)
    if (known) return known
    const listed = this.#record.listCopies({ dataset }, this.#record.nowMs())
    this.#copies.set(dataset, listed)
    return listed
  }

  /**
   * Chooses nodes for a job as `chooseNodes` does, but none of `excluded`, and keeps the resources of its pods there from
   * other jobs until `forget`.
   */
  async choose(
    task: string,
    waiting: Waiting & Pick<Expected, 'isPrefetch'>,
    excluded: ReadonlySet<string>,
  ): Promise<readonly string[]> {
    const copies = (await Promise.all(waiting.datasets.map((dataset) => this.listCopies(dataset)))).flat()
    // No await from here on: jobs that choose at the same time would each take what is free.
    this.forget(task)
    const { requests, count, datasets, isPrefetch } = waiting
    const all = this.#nodes.filter(({ name }) => !excluded.has(name))
    const free = new Map(all.map((node) => [node.name, this.#findFree(node, isPrefetch)]))
    const nodes = chooseNodes(waiting, {
      nodes: all,
      free,
      copies,
      coming: this.#coming,
      freeBytes: this.#freeBytes,
    })
    if (nodes.length === 0) return nodes
    const expected = { nodes, requests, count, datasets, isPrefetch }
    this.#expected.set(task, expected)
    this.#countExpected(expected, 1)
    return nodes
  }

  /** Gives back what `choose` keeps for a job: its pods are placed, or gone. */
  forget(task: string): void {
    const expected = this.#expected.get(task)
    if (expected === undefined) return
    this.#expected.delete(task)
    this.#countExpected(expected, -1)
  }

  /** The nodes that have a ready copy of each dataset. */
  async findNodes(datasets: readonly string[]): Promise<readonly string[]> {
    const ready: ReadonlySet<string>[] = []
    for (const dataset of datasets) {
      const copies = await this.listCopies(dataset)
      ready.push(
        new Set(copies.filter(({ state, stripe }) => state === 'ready' && !stripe).map(({ node }) => node)),
      )
    }
    return this.#nodes.map(({ name }) => name).filter((name) => ready.every((have) => have.has(name)))
  }

  /** The label `kubernetes.io/hostname` of a node. */
  hostnameOf(node: string): string {
    return this.#nodes.find(({ name }) => name === node)?.labels['kubernetes.io/hostname'] ?? node
  }

  #findFree({ name, allocatable }: NodeObject, isPrefetch: boolean): Quantities {
    const used = this.#used.get(name) ?? {}
    const queued = (isPrefetch && this.#queued.get(name)) || {}
    const left = Object.entries(allocatable).map(
      ([resource, value]) => [resource, value - (used[resource] ?? 0) - (queued[resource] ?? 0)] as const,
    )
    return Object.fromEntries(left)
  }

  #countExpected({ nodes, requests, count, datasets, isPrefetch }: Expected, sign: 1 | -1): void {
    const sums = isPrefetch ? this.#queued : this.#used
    for (const node of nodes) {
      add(sums, node, requests, sign * Math.ceil(count / nodes.length))
      this.#countComing(node, datasets, sign)
    }
  }

  #countComing(node: string, datasets: readonly string[], sign: 1 | -1): void {
    const coming = this.#coming.get(node) ?? new Map<string, number>()
    for (const dataset of datasets) {
      const jobs = (coming.get(dataset) ?? 0) + sign
      if (jobs > 0) coming.set(dataset, jobs)
      else coming.delete(dataset)
    }
    this.#coming.set(node, coming)
  }
}

function add(sums: Sums, node: string, requests: Quantities, count: number): void {
  const sum = sums.get(node) ?? {}
  for (const [resource, value] of Object.entries(requests))
    sum[resource] = (sum[resource] ?? 0) + value * count
  sums.set(node, sum)
}
