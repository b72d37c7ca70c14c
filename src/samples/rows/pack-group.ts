import { MessagePackWriter } from './message-pack.js'
import type { ParquetFile, RowGroup } from './parquet-file.js'
import { columnEncoders } from './row-encoder.js'

/** The values of one column of a row group as MessagePack, one after the other. */
interface PackedColumn {
  readonly key: Uint8Array
  readonly bytes: Uint8Array
  /** End of each value. */
  readonly ends: Float64Array
}

/**
 * Writes the rows of a row group, and calls `onRow` after each, which may clear the writer. Columns are decoded one
 * after the other and kept packed, so that memory holds their bytes instead of an object for every value.
 */
export async function packGroup(
  file: ParquetFile,
  group: RowGroup,
  options: {
    readonly writer: MessagePackWriter
    readonly onRow: () => void
    /** Called before each column is decoded, with its name for messages. */
    readonly onColumn: (what: string) => void
  },
): Promise<void> {
  const { writer, onRow, onColumn } = options
  const columns: PackedColumn[] = []
  for (const [i, { key, encode }] of columnEncoders(file.fields).entries()) {
    onColumn(file.nameColumn(group, i))
    const packed = new MessagePackWriter(group.unpackedBytes)
    const ends = new Float64Array(group.rowCount)
    let row = 0
    await file.readColumn(group, i, (run) => {
      for (let place = 0; place < run.length; place++) {
        encode(packed, run[place])
        ends[row++] = packed.length
      }
    })
    columns.push({ key, bytes: packed.written(), ends })
  }
  for (let row = 0; row < group.rowCount; row++) {
    writer.map(columns.length)
    for (const { key, bytes, ends } of columns) {
      writer.raw(key)
      writer.raw(bytes.subarray(row === 0 ? 0 : ends[row - 1], ends[row]))
    }
    onRow()
  }
}
