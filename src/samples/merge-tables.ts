import { DscError } from '../failure/dsc-error.js'
import { formatsOf } from './sample-encoding.js'
import { placeOf, type SampleTable } from './sample-table.js'
import { SampleTableBuilder } from './sample-table-builder.js'

/** One table for all nodes of a striped dataset. */
export interface MergedTable {
  readonly table: SampleTable
  /** For each sample the node whose table it came from. */
  readonly placement: Uint16Array
}

/**
 * Merges the tables of nodes that hold different files of one dataset. The result is the table that one machine with
 * all files would make, so the order of an epoch is the same. Throws if the nodes would read their files differently,
 * or if there is no sample.
 */
export function mergeTables(tables: readonly (SampleTable | undefined)[]): MergedTable {
  const formats = new Set(tables.flatMap((table) => (table ? [formatsOf(table.encodings)] : [])))
  if (formats.size === 0) throw new DscError('SOURCE_EMPTY', 'no node holds a sample to feed')
  if (formats.size > 1) {
    throw new DscError(
      'FEED_STATE_MISMATCH',
      `the nodes hold files of different kinds: samples would be ${[...formats].join(' on one and ')} on another`,
      { hint: 'choose one kind of file with --only' },
    )
  }
  const files = tables
    .flatMap((table, node) =>
      Array.from({ length: table?.fileCount ?? 0 }, (_, file) => ({
        node,
        file,
        entry: table!.fileAt(file),
      })),
    )
    .sort((a, b) => (a.entry.path < b.entry.path ? -1 : 1)) // like indexSamples
  const samplesOf = tables.map((table) => groupByFile(table))
  const samples = new SampleTableBuilder()
  const nodes: number[] = []
  for (const [at, { node, file, entry }] of files.entries()) {
    const table = tables[node]!
    for (const sample of samplesOf[node]!.get(file) ?? []) {
      const place = { ...placeOf(table, sample), file: at }
      if (entry.rowName === undefined) samples.add({ ...place, name: table.rawNameOf(sample) })
      else samples.addRow(place)
      nodes.push(node)
    }
  }
  return { table: samples.build(files.map(({ entry }) => entry)), placement: Uint16Array.from(nodes) }
}

/** File → its samples, in order. */
function groupByFile(table: SampleTable | undefined): ReadonlyMap<number, readonly number[]> {
  const samples = new Map<number, number[]>()
  for (let sample = 0; sample < (table?.count ?? 0); sample++) {
    const file = table!.files[sample]!
    const known = samples.get(file)
    if (known) known.push(sample)
    else samples.set(file, [sample])
  }
  return samples
}
