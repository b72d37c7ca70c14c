import { DscError } from '../../failure/dsc-error.js'
import { type BytePath, fromText } from './byte-path.js'
import type { SampleFolder } from './index-samples.js'
import { SampleTableBuilder } from './sample-table-builder.js'

/** A folder of samples that is to be joined with others. */
export interface NamedSamples {
  /** Precedes the names of its samples, with a slash. */
  readonly name: string
  readonly folder: Pick<SampleFolder, 'root' | 'table'>
}

/** Joins folders into one, whose samples follow each other in byte order of the names of `parts`. */
export function joinSamples(parts: readonly NamedSamples[]): Pick<SampleFolder, 'root' | 'table'> {
  const format = parts[0]!.folder.table.format
  const files: BytePath[] = []
  const samples = new SampleTableBuilder()
  for (const { name, folder } of parts.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { table, root } = folder
    if (table.format !== format)
      throw new DscError(
        'USAGE',
        `${parts[0]!.name} consists of samples of kind '${format}' and ${name} of kind '${table.format}'; together they need one kind`,
        { hint: "pack all of them into tar shards with as many members per key, or none ('file')" },
      )
    const firstFile = files.length
    const folderPath = fromText(root === '/' ? '' : root.slice(1))
    for (let file = 0; file < table.fileCount; file++)
      files.push(folderPath === '' ? table.rawFileName(file) : `${folderPath}/${table.rawFileName(file)}`)
    for (let sample = 0; sample < table.count; sample++)
      samples.add({
        name: `${fromText(name)}/${table.rawNameOf(sample)}`,
        file: firstFile + table.files[sample]!,
        offset: table.offsets[sample]!,
        length: table.lengths[sample]!,
        crc32: table.crcs[sample]!,
      })
  }
  return { root: '/', table: samples.build(format, files) }
}
