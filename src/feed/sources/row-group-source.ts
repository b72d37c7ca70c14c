import { toBytes, toText } from '../../samples/byte-path.js'
import { isIntact } from '../../samples/read-samples.js'
import { GroupReader } from '../../samples/rows/group-reader.js'
import type { RowGroups } from '../../samples/rows/row-groups.js'
import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import { ArenaWriter } from '../arena/arena-writer.js'

/** Bytes to hold beyond the groups that an order has open, because each rank's requests run ahead on their own. */
const AHEAD_BYTES = 64 * 2 ** 20

/** A row group that was read or is being read. */
interface HeldGroup {
  readonly rows: Promise<Uint8Array>
  readonly bytes: number
  /** Number of its rows not requested since it was read. */
  rowsLeft: number
}

/**
 * Rows from Parquet files that are not unpacked. A row group is read whole when its first row is requested, and held
 * until all of its rows have been. The order (`shuffleGroups`) has few groups open at a time. If rows are never
 * requested here, because other machines read them or because they are still in memory, their group is dropped when it
 * no longer fits.
 */
export class RowGroupSource implements SampleSource {
  readonly layout = 'full'
  readonly origin = 'local'
  readonly nodeCount = 1
  readonly table: SampleTable
  readonly #groups: RowGroups
  readonly #arena: ArenaWriter
  readonly #reader = new GroupReader()
  /** By group, least recently used first. */
  readonly #held = new Map<number, HeldGroup>()
  readonly #firstGroups: Uint32Array
  readonly #mostBytes: number
  #heldBytes = 0
  #groupsRead = 0

  constructor({ table, groups, arenaFd }: { table: SampleTable; groups: RowGroups; arenaFd: number }) {
    this.table = table
    this.#groups = groups
    this.#arena = new ArenaWriter(arenaFd)
    this.#firstGroups = findFirstGroups(table, groups)
    const meanBytes = table.totalBytes / Math.max(1, groups.ends.length)
    this.#mostBytes = groups.window * meanBytes + Math.max(AHEAD_BYTES, 2 * meanBytes)
  }

  nodeName(): string {
    return toText(this.#groups.root)
  }

  counters(): Readonly<Record<string, number>> {
    return { row_groups_read: this.#groupsRead }
  }

  async read(request: ReadRequest, onSample: OnSample): Promise<void> {
    const places = new Map<number, number[]>()
    for (const [i, sample] of request.samples.entries()) {
      const group = this.#groupOf(sample)
      const known = places.get(group)
      if (known) known.push(i)
      else places.set(group, [i])
    }
    // Every read ends before the request does: a read may still write to the samples' places until then.
    const reads = Array.from(places, ([group, of]) =>
      this.#readFrom(group, { request, places: of, onSample }),
    )
    const failed = (await Promise.allSettled(reads)).find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
  }

  async close(): Promise<void> {
    this.#held.clear()
    await this.#reader.close()
  }

  async #readFrom(
    group: number,
    wanted: {
      readonly request: ReadRequest
      readonly places: readonly number[]
      readonly onSample: OnSample
    },
  ): Promise<void> {
    const { request, places, onSample } = wanted
    const { samples, offsets, signal } = request
    const { table } = this
    const rows = await this.#hold(group, places.length).catch(() => undefined)
    const start = table.offsets[this.#firstSample(group)]!
    const statuses = places.map((i) => {
      if (signal?.aborted) return 'unreachable'
      const at = table.offsets[samples[i]!]! - start
      const row = rows?.subarray(at, at + table.lengths[samples[i]!]!)
      if (!row || !isIntact(table, samples[i]!, row)) return 'corrupt'
      this.#arena.write(row, offsets[i]!)
      return 'ok'
    })
    this.#arena.flush()
    for (const [place, status] of statuses.entries()) onSample(places[place]!, status)
  }

  /** Returns the rows of a group, and counts `taken` of them as requested. */
  #hold(group: number, taken: number): Promise<Uint8Array> {
    const held = this.#held.get(group) ?? this.#begin(group)
    this.#held.delete(group)
    held.rowsLeft -= taken
    if (held.rowsLeft > 0) this.#held.set(group, held)
    else this.#heldBytes -= held.bytes
    for (const [oldest, { bytes }] of this.#held) {
      if (this.#heldBytes <= this.#mostBytes || oldest === group) break
      this.#held.delete(oldest)
      this.#heldBytes -= bytes
    }
    return held.rows
  }

  #begin(group: number): HeldGroup {
    const { root, columns, ends } = this.#groups
    const { table } = this
    const first = this.#firstSample(group)
    const last = ends[group]! - 1
    const file = table.files[first]!
    const { path } = table.fileAt(file)
    const rows = this.#reader.read({
      path: toBytes(`${root}/${path}`),
      shown: toText(path),
      columns,
      group: group - this.#firstGroups[file]!,
    })
    const bytes = table.offsets[last]! + table.lengths[last]! - table.offsets[first]!
    rows.catch(() => {
      if (this.#held.delete(group)) this.#heldBytes -= bytes // the next request reads it again
    })
    this.#groupsRead += 1
    this.#heldBytes += bytes
    return { rows, bytes, rowsLeft: ends[group]! - first }
  }

  #firstSample(group: number): number {
    return group === 0 ? 0 : this.#groups.ends[group - 1]!
  }

  #groupOf(sample: number): number {
    const { ends } = this.#groups
    let low = 0
    let high = ends.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (ends[middle]! > sample) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** Finds the first group of each file. */
function findFirstGroups(table: SampleTable, { ends }: RowGroups): Uint32Array {
  const firsts = new Uint32Array(table.fileCount)
  for (let group = ends.length - 1; group >= 0; group--) firsts[table.files[ends[group]! - 1]!] = group
  return firsts
}
