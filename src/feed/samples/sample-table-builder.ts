import { createHash } from 'node:crypto'
import { type BytePath, toBytes } from './byte-path.js'
import {
  allocateSampleTable,
  FINGERPRINT_AT,
  openSampleTable,
  type SampleFormat,
  type SampleRow,
  type SampleTable,
} from './sample-table.js'

const FIRST_ROWS = 1024
const FIRST_NAME_BYTES = 64 * 1024

/** Collects the samples of a table in columns, so that millions take the memory of their numbers and names. */
export class SampleTableBuilder {
  readonly #hash = createHash('sha256')
  #count = 0
  #nameFill = 0
  #names = new Uint8Array(FIRST_NAME_BYTES)
  #nameEnds = new Float64Array(FIRST_ROWS)
  #offsets = new Float64Array(FIRST_ROWS)
  #lengths = new Uint32Array(FIRST_ROWS)
  #files = new Uint32Array(FIRST_ROWS)
  #crcs = new Uint32Array(FIRST_ROWS)

  add({ name, file, offset, length, crc32 }: SampleRow): void {
    const bytes = toBytes(name)
    this.#hash.update(bytes).update(`\0${length}\0${crc32.toString(16)}\n`)
    this.#grow(bytes.length)
    this.#names.set(bytes, this.#nameFill)
    this.#nameFill += bytes.length
    this.#nameEnds[this.#count] = this.#nameFill
    this.#offsets[this.#count] = offset
    this.#lengths[this.#count] = length
    this.#files[this.#count] = file
    this.#crcs[this.#count] = crc32
    this.#count++
  }

  /** Ends the table. `paths` are the files that rows point to. Without checksums it has no fingerprint. */
  build(
    format: SampleFormat,
    paths: readonly BytePath[],
    { hasChecksums = true }: { readonly hasChecksums?: boolean } = {},
  ): SampleTable {
    const count = this.#count
    const pathBytes = paths.reduce((sum, path) => sum + path.length, 0) // a character is a byte
    const shape = { format, count, fileCount: paths.length, nameBytes: this.#nameFill, pathBytes }
    const { bytes, columns } = allocateSampleTable(shape)
    if (hasChecksums) bytes.set(this.#hash.digest(), FINGERPRINT_AT)
    columns.names.set(this.#names.subarray(0, this.#nameFill))
    columns.nameEnds.set(this.#nameEnds.subarray(0, count))
    columns.offsets.set(this.#offsets.subarray(0, count))
    columns.lengths.set(this.#lengths.subarray(0, count))
    columns.files.set(this.#files.subarray(0, count))
    columns.crcs.set(this.#crcs.subarray(0, count))
    let end = 0
    for (const [i, path] of paths.entries()) {
      columns.paths.set(toBytes(path), end)
      end += path.length
      columns.pathEnds[i] = end
    }
    return openSampleTable(bytes)
  }

  /** Doubles what is too small for one more row with a name of `nameBytes`. */
  #grow(nameBytes: number): void {
    if (this.#nameFill + nameBytes > this.#names.length)
      this.#names = enlarge(this.#names, Math.max(2 * this.#names.length, this.#nameFill + nameBytes))
    if (this.#count < this.#lengths.length) return
    const rows = 2 * this.#count
    this.#nameEnds = enlarge(this.#nameEnds, rows)
    this.#offsets = enlarge(this.#offsets, rows)
    this.#lengths = enlarge(this.#lengths, rows)
    this.#files = enlarge(this.#files, rows)
    this.#crcs = enlarge(this.#crcs, rows)
  }
}

/** The same values in a longer column. */
function enlarge<
  Column extends Uint8Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Float64Array<ArrayBuffer>,
>(column: Column, length: number): Column {
  const longer = new (column.constructor as new (length: number) => Column)(length)
  longer.set(column)
  return longer
}
