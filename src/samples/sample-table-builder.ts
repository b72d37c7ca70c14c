import { makeTable } from './make-table.js'
import { allocatePages, type NumberKind } from './plan/shared-pages.js'
import type { SamplePlace, SampleRow, SampleTable, TableFile } from './sample-table.js'
import { bytesFor } from './table-layout.js'

const CHUNK_ROWS = 1 << 16
const FIRST_NAME_BYTES = 64 * 1024

/**
 * Collects the samples of a table in columns, so that a hundred million take only the memory of their numbers and
 * names: 20 bytes each and 16 more while the table is built (20, if files are 4 GiB or longer); 8 and 4 more, plus the
 * name, for a sample with its own name.
 */
export class SampleTableBuilder {
  #count = 0
  #nameFill = 0
  #names: Uint8Array = allocatePages(Uint8Array, FIRST_NAME_BYTES)
  #largestOffset = 0
  /** Name ends of the first samples; the others have no names of their own. */
  readonly #nameEnds = new Column(Float64Array)
  readonly #offsets = new Column(Float64Array)
  readonly #lengths = new Column(Uint32Array)
  readonly #files = new Column(Uint32Array)
  readonly #crcs = new Column(Uint32Array)

  get count(): number {
    return this.#count
  }

  /** Adds a sample with its own name. */
  add(row: SampleRow): void {
    const { name } = row
    while (this.#nameEnds.length < this.#count) this.#nameEnds.push(this.#nameFill)
    this.#growNames(name.length)
    for (let i = 0; i < name.length; i++) this.#names[this.#nameFill++] = name.charCodeAt(i) // a character is a byte
    this.#nameEnds.push(this.#nameFill)
    this.addRow(row)
  }

  /** Adds a sample of a file with a `rowName`. */
  addRow({ file, offset, length, crc32 }: SamplePlace): void {
    this.#offsets.push(offset)
    if (offset > this.#largestOffset) this.#largestOffset = offset
    this.#lengths.push(length)
    this.#files.push(file)
    this.#crcs.push(crc32)
    this.#count++
  }

  /** Finishes the table. Samples point to `files` by number. Without checksums it has no fingerprint. */
  build(
    files: readonly TableFile[],
    { hasChecksums = true }: { readonly hasChecksums?: boolean } = {},
  ): SampleTable {
    const count = this.#count
    const isNamed = this.#nameEnds.length > 0
    if (isNamed) while (this.#nameEnds.length < count) this.#nameEnds.push(this.#nameFill)
    const shape = {
      count,
      nameCount: isNamed ? count : 0,
      nameBytes: this.#nameFill,
      offsetBytes: bytesFor(this.#largestOffset),
    }
    return makeTable({ shape, files, hasChecksums }, (columns) => {
      columns.names.set(this.#names.subarray(0, this.#nameFill))
      this.#offsets.copyTo(columns.offsets)
      this.#lengths.copyTo(columns.lengths)
      this.#files.copyTo(columns.files)
      this.#crcs.copyTo(columns.crcs)
      if (isNamed) this.#nameEnds.copyTo(columns.nameEnds)
    })
  }

  #growNames(bytes: number): void {
    if (this.#nameFill + bytes <= this.#names.length) return
    const longer = allocatePages(Uint8Array, Math.max(2 * this.#names.length, this.#nameFill + bytes))
    longer.set(this.#names)
    this.#names = longer
  }
}

/** Numbers that grow by whole chunks, so that growing never copies existing ones. */
class Column<Numbers extends Uint32Array | Float64Array> {
  readonly #kind: NumberKind<Numbers>
  readonly #chunks: Numbers[] = []
  #chunk: Numbers | undefined
  length = 0

  constructor(kind: NumberKind<Numbers>) {
    this.#kind = kind
  }

  push(value: number): void {
    const at = this.length % CHUNK_ROWS
    if (at === 0) {
      this.#chunk = allocatePages(this.#kind, CHUNK_ROWS)
      this.#chunks.push(this.#chunk)
    }
    this.#chunk![at] = value
    this.length++
  }

  /** Copies to a column of exactly this length. */
  copyTo(target: Uint32Array | Float64Array): void {
    for (const [i, chunk] of this.#chunks.entries())
      target.set(chunk.subarray(0, Math.min(CHUNK_ROWS, this.length - i * CHUNK_ROWS)), i * CHUNK_ROWS)
  }
}
