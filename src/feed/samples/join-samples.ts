import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import type { SampleFolder } from './index-samples.js'
import { buildSampleTable, type SampleRow } from './sample-table.js'

/** A folder of samples that is to be joined with others. */
export interface NamedSamples {
  /** Precedes the names of its samples, with a slash. */
  readonly name: string
  readonly folder: Pick<SampleFolder, 'root' | 'table'>
}

/** Joins folders into one, whose samples follow each other in byte order of the names of `parts`. */
export function joinSamples(parts: readonly NamedSamples[]): Pick<SampleFolder, 'root' | 'table'> {
  const format = parts[0]!.folder.table.format
  const files: string[] = []
  const rows: SampleRow[] = []
  for (const { name, folder } of parts.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { table, root } = folder
    if (table.format !== format)
      throw new DscError(
        'USAGE',
        `${parts[0]!.name} consists of samples of kind '${format}' and ${name} of kind '${table.format}'; together they need one kind`,
        { hint: "pack all of them into tar shards with as many members per key, or none ('file')" },
      )
    const firstFile = files.length
    for (let file = 0; file < table.fileCount; file++) files.push(join(root, table.fileName(file)).slice(1))
    for (let sample = 0; sample < table.count; sample++)
      rows.push({
        name: `${name}/${table.nameOf(sample)}`,
        file: firstFile + table.files[sample]!,
        offset: table.offsets[sample]!,
        length: table.lengths[sample]!,
        crc32: table.crcs[sample]!,
      })
  }
  return { root: '/', table: buildSampleTable(format, files, rows) }
}
