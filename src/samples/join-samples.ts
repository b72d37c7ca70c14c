import { fromText } from './byte-path.js'
import type { SampleFolder } from './index-samples.js'
import { placeOf, type TableFile } from './sample-table.js'
import { SampleTableBuilder } from './sample-table-builder.js'

/** A folder of samples to join with others. */
export interface NamedSamples {
  /** Prefix of its samples' names, before a slash. */
  readonly name: string
  readonly folder: Pick<SampleFolder, 'root' | 'table'>
}

/** Joins folders into one, with samples in byte order of the names of `parts`. */
export function joinSamples(parts: readonly NamedSamples[]): Pick<SampleFolder, 'root' | 'table'> {
  const files: TableFile[] = []
  const samples = new SampleTableBuilder()
  for (const { name, folder } of parts.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { table, root } = folder
    const firstFile = files.length
    const folderPath = fromText(root === '/' ? '' : root.slice(1))
    for (let file = 0; file < table.fileCount; file++) {
      const { path, encoding, rowName } = table.fileAt(file)
      files.push({
        path: folderPath === '' ? path : `${folderPath}/${path}`,
        encoding,
        rowName: rowName && `${fromText(name)}/${rowName}`,
      })
    }
    for (let sample = 0; sample < table.count; sample++) {
      const place = placeOf(table, sample, firstFile)
      if (files[place.file]!.rowName === undefined)
        samples.add({ ...place, name: `${fromText(name)}/${table.rawNameOf(sample)}` })
      else samples.addRow(place)
    }
  }
  return { root: '/', table: samples.build(files) }
}
