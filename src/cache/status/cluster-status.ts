import type { CopyUse } from '../../model/copy.js'
import { isLeaseLive, type PlacedLease } from '../../model/lease.js'
import type { NodeEntry } from '../../model/node.js'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import { type CopySum, sumUpCopies } from '../../policy/copy-sums.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { addReaders } from './add-readers.js'
import {
  describeTransfers,
  type NodeStatus,
  STATUS_EVENTS,
  seeStagers,
  type TransferStatus,
} from './compose-status.js'
import { HeldCells, NameTable } from './held-cells.js'
import { listTroubles, type Trouble } from './list-troubles.js'
import { listWaits, type WaitStatus } from './list-waits.js'
import { measureNodeUsage, type NodeUsage } from './node-usage.js'
import type { StatusReader } from './status-reader.js'
import { NO_THROUGHPUT, noteThroughput, type Throughput } from './throughput.js'
import { type DayCopy, shortenCopies } from './trace-day.js'

/** A cluster in a few bytes per copy, for pages and reports that read it repeatedly. */
export interface ClusterStatus {
  readonly takenAtMs: number
  readonly recordLocation: string
  /** All nodes of the record, in its order; those not read yet have no copies and no usage. */
  readonly nodes: readonly ClusterNode[]
  /** Names of datasets, indexed by the numbers in `HeldCells`. */
  readonly datasets: readonly string[]
  readonly transfers: readonly TransferStatus[]
  readonly waits: readonly WaitStatus[]
  readonly throughput: Throughput
  /** See `listTroubles`. */
  readonly troubles: readonly Trouble[]
}

/** A node and its copies. */
export interface ClusterNode {
  readonly entry: NodeEntry
  /** Undefined until its copies have been read. */
  readonly read: ReadNode | undefined
}

interface ReadNode {
  readonly usage: NodeUsage
  readonly cells: HeldCells
  readonly sums: readonly CopySum[]
  /** Its ready copies, shortened. */
  readonly dayCopies: readonly DayCopy[]
  readonly atMs: number
}

/** How long one reading may spend on nodes, in ms; the rest wait for the next reading. */
const BUDGET_MS = 150
/** Time until the next reading while some nodes are older than the last one, in ms. */
const NEXT_NODES_MS = 2000
/** Number of copies up to which leases are read by copy; above it they are read by node. */
const MAX_COPY_QUERIES = 50
const FINDINGS: readonly RecordEventKind[] = ['damaged', 'repaired']

/** The record and the clock for reading the cluster. */
interface ClusterReading {
  readonly record: Pick<
    RecordStore,
    'location' | 'listNodes' | 'listCopies' | 'listLeases' | 'listEvents' | 'waitForChange'
  >
  /** This node; only its stagers can be asked. */
  readonly ownNode: Pick<NodeEntry, 'node' | 'cacheRoot'>
  /** Wall clock, Unix epoch in ms. */
  readonly nowMs: () => number
}

/**
 * Reads a cluster bit by bit: each time first the nodes named in events or stagings, then those read longest ago, for
 * `BUDGET_MS`. This way 1,000 nodes with 500 datasets each take only the memory of numbers, and no reading blocks for
 * long.
 */
export class ClusterReader implements StatusReader<ClusterStatus> {
  readonly #reading: ClusterReading
  readonly #names = new NameTable()
  readonly #read = new Map<string, ReadNode>()
  #throughput = NO_THROUGHPUT
  #lastSequence = -1
  #moving = new Set<string>()
  #isRoundOver = false
  /** Findings of damage and repairs, newest first. */
  #findings: readonly RecordEvent[] | undefined

  constructor(reading: ClusterReading) {
    this.#reading = reading
  }

  async read(): Promise<ClusterStatus> {
    const { record, nowMs } = this.#reading
    const takenAtMs = nowMs()
    const entries = await record.listNodes()
    const events = await record.listEvents({ limit: STATUS_EVENTS })
    const moving = await record.listCopies({ states: ['reserved', 'staging', 'evicting'] }, takenAtMs)
    await this.#readNodes(entries, this.#findChanged(events, moving))
    const transfers = await this.#describeTransfers(moving)
    this.#throughput = noteThroughput(this.#throughput, { takenAtMs, transfers })
    const nodes = seeStagers(entries, transfers).map((entry) => ({ entry, read: this.#read.get(entry.node) }))
    const waits = listWaits({ takenAtMs, transfers, events })
    const found = await this.#findDamage()
    return {
      takenAtMs,
      recordLocation: record.location,
      nodes,
      datasets: this.#names.names,
      transfers,
      waits,
      throughput: this.#throughput,
      troubles: listTroubles({ takenAtMs, waits, nodes: nodes.map(asNodeStatus), ...found }),
    }
  }

  completeInMs(): number | undefined {
    return this.#isRoundOver ? undefined : NEXT_NODES_MS
  }

  waitForChange(wait: Parameters<StatusReader['waitForChange']>[0]): Promise<void> {
    return this.#reading.record.waitForChange(wait)
  }

  /** Nodes whose copies have changed since they were read; all of them if too much happened to tell. */
  #findChanged(events: readonly RecordEvent[], moving: readonly CopyUse[]): ReadonlySet<string> | 'all' {
    const since = this.#lastSequence
    this.#lastSequence = events[0]?.sequence ?? since
    const recent = events.filter(({ sequence }) => sequence > since)
    if (since < 0 || recent.length >= STATUS_EVENTS || recent.some(({ kind }) => FINDINGS.includes(kind)))
      this.#findings = undefined
    const before = this.#moving
    this.#moving = new Set(moving.map(({ node, copyId, state }) => `${node} ${state} ${copyId}`))
    const turned = [...this.#moving, ...before]
      .filter((key) => !this.#moving.has(key) || !before.has(key))
      .map((key) => key.slice(0, key.indexOf(' '))) // node names contain no spaces
    if (since >= 0 && recent.length >= STATUS_EVENTS) return 'all'
    return new Set([...recent.map(({ node }) => node), ...turned])
  }

  /** The latest findings of damage, and those of their copies that are still there. */
  async #findDamage() {
    const { record, nowMs } = this.#reading
    this.#findings ??= await record.listEvents({ kinds: FINDINGS, limit: STATUS_EVENTS })
    const damaged = this.#findings.filter(({ kind }) => kind === 'damaged')
    const copyIds = new Set(damaged.flatMap(({ copyId }) => copyId ?? []))
    const copies: CopyUse[] = []
    for (const copyId of copyIds) copies.push(...(await record.listCopies({ copyId }, nowMs())))
    return { events: this.#findings, copies }
  }

  async #readNodes(entries: readonly NodeEntry[], changed: ReadonlySet<string> | 'all'): Promise<void> {
    const { record, nowMs } = this.#reading
    const known = new Set(entries.map(({ node }) => node))
    for (const node of this.#read.keys()) if (!known.has(node)) this.#read.delete(node)
    const ageOf = ({ node }: NodeEntry) =>
      changed !== 'all' && changed.has(node) ? -1 : (this.#read.get(node)?.atMs ?? 0)
    const order = entries.toSorted((a, b) => ageOf(a) - ageOf(b))
    const endMs = performance.now() + BUDGET_MS
    const beganMs = nowMs()
    for (const { node, policy, disk } of order) {
      if (performance.now() > endMs) break
      const copies = await record.listCopies({ node }, nowMs())
      const sums = sumUpCopies(copies)
      this.#read.set(node, {
        usage: measureNodeUsage(policy, disk, sums),
        cells: new HeldCells(copies, this.#names),
        sums,
        dayCopies: shortenCopies(copies, nowMs()),
        atMs: nowMs(),
      })
    }
    this.#isRoundOver = entries.every(({ node }) => (this.#read.get(node)?.atMs ?? -1) >= beganMs)
  }

  async #describeTransfers(moving: readonly CopyUse[]): Promise<readonly TransferStatus[]> {
    const { record, nowMs, ownNode } = this.#reading
    const coming = moving.filter(({ state }) => state !== 'evicting')
    if (coming.length === 0) return []
    const leases = await this.#readLeases(coming)
    const transferLeases = await record.listLeases({ purpose: 'transfer' })
    const transfers = describeTransfers(coming, { leases, transferLeases, takenAtMs: nowMs() })
    return addReaders(transfers, ownNode)
  }

  async #readLeases(copies: readonly CopyUse[]): Promise<readonly PlacedLease[]> {
    const { record, nowMs } = this.#reading
    const wanted =
      copies.length <= MAX_COPY_QUERIES
        ? copies.map(({ copyId }) => ({ copyId }))
        : [...new Set(copies.map(({ node }) => node))].map((node) => ({ node }))
    const found: PlacedLease[] = []
    for (const filter of wanted) {
      const leases = await record.listLeases(filter)
      found.push(...leases.filter((lease) => isLeaseLive(lease, nowMs())))
    }
    return found
  }
}

/** A node in the form of the other status views; until its copies are read it appears to have none. */
export function asNodeStatus({ entry, read }: ClusterNode): NodeStatus {
  return { ...entry, usage: read?.usage ?? measureNodeUsage(entry.policy, entry.disk, []) }
}
