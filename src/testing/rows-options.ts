import type { RowsOptions, RowsReading } from '../samples/rows/rows-place.js'

/** Unpacks rows into a folder with enough space. */
export function rowsOptions(folder: string, reading: RowsReading = { kind: 'unpacked' }): RowsOptions {
  const place = { writePath: folder, readPath: folder, makeRoom: async () => {}, settle: async () => {} }
  return { reading, openPlace: async () => ({ ...place, close() {} }) }
}
