import assert from 'node:assert/strict'
import { createHash, type Hash } from 'node:crypto'
import { type BytePath, toBytes } from './byte-path.js'
import {
  openSampleTable,
  type SamplePlace,
  type SampleRow,
  type SampleTable,
  type TableFile,
} from './sample-table.js'
import { allocateTable, FINGERPRINT_AT, type TableColumns } from './table-layout.js'

const CHUNK_ROWS = 1 << 16
const FIRST_NAME_BYTES = 64 * 1024
const DIGEST_BYTES = 64 * 1024
const DIGITS = Buffer.from('0123456789abcdef')
const NEWLINE = 0x0a

/**
 * Collects the samples of a table in columns, so that a hundred million take the memory of their numbers and names:
 * 20 bytes each and as many again while the table is built; 8 more and its name for a sample with one of its own.
 */
export class SampleTableBuilder {
  #count = 0
  #nameFill = 0
  #names = new Uint8Array(FIRST_NAME_BYTES)
  /** Of the first so many samples; the others have no names of their own. */
  readonly #nameEnds = new Column(Float64Array)
  readonly #offsets = new Column(Float64Array)
  readonly #lengths = new Column(Uint32Array)
  readonly #files = new Column(Uint32Array)
  readonly #crcs = new Column(Uint32Array)

  get count(): number {
    return this.#count
  }

  /** A sample with a name of its own. */
  add(row: SampleRow): void {
    const { name } = row
    while (this.#nameEnds.length < this.#count) this.#nameEnds.push(this.#nameFill)
    this.#growNames(name.length)
    for (let i = 0; i < name.length; i++) this.#names[this.#nameFill++] = name.charCodeAt(i) // a character is a byte
    this.#nameEnds.push(this.#nameFill)
    this.addRow(row)
  }

  /** A sample of a file with a `rowName`. */
  addRow({ file, offset, length, crc32 }: SamplePlace): void {
    this.#offsets.push(offset)
    this.#lengths.push(length)
    this.#files.push(file)
    this.#crcs.push(crc32)
    this.#count++
  }

  /** All samples of a table, each with a name of its own; its files are those from `firstFile` on. */
  addAll(table: SampleTable, firstFile: number): void {
    const { count, names, nameEnds, offsets, lengths, files, crcs } = table
    assert.ok(nameEnds.length === count && this.#nameEnds.length === this.#count)
    this.#growNames(names.length)
    this.#names.set(names, this.#nameFill)
    for (let sample = 0; sample < count; sample++) {
      this.#nameEnds.push(this.#nameFill + nameEnds[sample]!)
      this.#offsets.push(offsets[sample]!)
      this.#lengths.push(lengths[sample]!)
      this.#files.push(firstFile + files[sample]!)
      this.#crcs.push(crcs[sample]!)
    }
    this.#nameFill += names.length
    this.#count += count
  }

  /** Ends the table. Samples point to `files` by number. Without checksums it has no fingerprint. */
  build(
    files: readonly TableFile[],
    { hasChecksums = true }: { readonly hasChecksums?: boolean } = {},
  ): SampleTable {
    const count = this.#count
    const isNamed = this.#nameEnds.length > 0
    if (isNamed) while (this.#nameEnds.length < count) this.#nameEnds.push(this.#nameFill)
    const encodings = new Map<string, number>()
    const fileEncodings = files.map(({ encoding }) => {
      const text = JSON.stringify(encoding)
      if (!encodings.has(text)) encodings.set(text, encodings.size)
      return encodings.get(text)!
    })
    const encodingText = Buffer.from(`[${[...encodings.keys()].join(',')}]`)
    const { bytes, columns } = allocateTable({
      count,
      nameCount: isNamed ? count : 0,
      fileCount: files.length,
      nameBytes: this.#nameFill,
      pathBytes: files.reduce((sum, { path }) => sum + path.length, 0), // a character is a byte
      rowNameBytes: files.reduce((sum, { rowName = '' }) => sum + rowName.length, 0),
      encodingBytes: encodingText.length,
    })
    columns.names.set(this.#names.subarray(0, this.#nameFill))
    for (const name of ['offsets', 'lengths', 'files', 'crcs'] as const)
      this.#columnOf(name).copyTo(columns[name])
    if (isNamed) this.#nameEnds.copyTo(columns.nameEnds)
    columns.encodings.set(encodingText)
    fillTexts(
      files.map(({ path }) => path),
      columns.paths,
      columns.pathEnds,
    )
    fillTexts(
      files.map(({ rowName = '' }) => rowName),
      columns.rowNames,
      columns.rowNameEnds,
    )
    columns.fileEncodings.set(fileEncodings)
    noteFirstSamples(columns)
    if (hasChecksums) bytes.set(digestSamples(columns, files), FINGERPRINT_AT)
    return openSampleTable(bytes)
  }

  #columnOf(name: 'offsets' | 'lengths' | 'files' | 'crcs') {
    return { offsets: this.#offsets, lengths: this.#lengths, files: this.#files, crcs: this.#crcs }[name]
  }

  #growNames(bytes: number): void {
    if (this.#nameFill + bytes <= this.#names.length) return
    const longer = new Uint8Array(Math.max(2 * this.#names.length, this.#nameFill + bytes))
    longer.set(this.#names)
    this.#names = longer
  }
}

function noteFirstSamples({ files, firstSamples }: TableColumns): void {
  for (let sample = files.length - 1; sample >= 0; sample--) firstSamples[files[sample]!] = sample
}

/** Digests names, lengths and checksums in order. */
function digestSamples(columns: TableColumns, files: readonly TableFile[]): Buffer {
  const { lengths, crcs, names, nameEnds } = columns
  const hash = createHash('sha256')
  const texts = new TextDigest(hash)
  const seen = new Uint8Array(files.length)
  for (let sample = 0; sample < lengths.length; ) {
    const file = columns.files[sample]!
    const rowName = files[file]?.rowName
    if (rowName === undefined) {
      seen[file] = 1
      texts.addBytes(names, sample === 0 ? 0 : nameEnds[sample - 1]!, nameEnds[sample]!)
      texts.addNumbers(lengths[sample]!, crcs[sample]!)
      sample++
      continue
    }
    assert.ok(!seen[file], `the rows of ${rowName} do not follow each other`)
    seen[file] = 1
    let end = sample + 1
    while (end < lengths.length && columns.files[end] === file) end++
    texts.flush()
    hash.update(`${rowName}\0rows\0${end - sample}\n`, 'latin1')
    for (const column of [lengths, crcs])
      hash.update(new Uint8Array(column.buffer, column.byteOffset + 4 * sample, 4 * (end - sample)))
    sample = end
  }
  texts.flush()
  return hash.digest()
}

/** Gathers short texts for a digest, each call of which costs more than the bytes of one; no view or string is made of any. */
class TextDigest {
  readonly #hash: Hash
  readonly #bytes = new Uint8Array(DIGEST_BYTES)
  #fill = 0

  constructor(hash: Hash) {
    this.#hash = hash
  }

  addBytes(bytes: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; at++) {
      if (this.#fill === DIGEST_BYTES) this.flush()
      this.#bytes[this.#fill++] = bytes[at]!
    }
  }

  /** As `\0<length>\0<CRC-32 in hexadecimal>\n`. */
  addNumbers(length: number, crc32: number): void {
    if (this.#fill + 32 > DIGEST_BYTES) this.flush()
    this.#bytes[this.#fill++] = 0
    this.#addDigits(length, 10)
    this.#bytes[this.#fill++] = 0
    this.#addDigits(crc32, 16)
    this.#bytes[this.#fill++] = NEWLINE
  }

  flush(): void {
    this.#hash.update(this.#bytes.subarray(0, this.#fill))
    this.#fill = 0
  }

  #addDigits(value: number, base: 10 | 16): void {
    let end = this.#fill + 1
    for (let rest = value; rest >= base; rest = quotientOf(rest, base)) end++
    let rest = value
    for (let at = end - 1; at >= this.#fill; at--) {
      const quotient = quotientOf(rest, base)
      this.#bytes[at] = DIGITS[rest - quotient * base]!
      rest = quotient
    }
    this.#fill = end
  }
}

/** Of a value below 2^32, without a division of doubles where there is none needed. */
const quotientOf = (value: number, base: 10 | 16): number =>
  base === 16 ? value >>> 4 : ((value >>> 0) / 10) >>> 0

/** Puts texts behind each other, and where each ends. */
function fillTexts(texts: readonly BytePath[], bytes: Uint8Array, ends: Float64Array): void {
  let end = 0
  for (const [i, text] of texts.entries()) {
    bytes.set(toBytes(text), end)
    end += text.length
    ends[i] = end
  }
}

/** Numbers that grow by whole chunks: what is there is never copied to make room. */
class Column<Numbers extends Uint32Array | Float64Array> {
  readonly #kind: new (
    length: number,
  ) => Numbers
  readonly #chunks: Numbers[] = []
  #chunk: Numbers | undefined
  length = 0

  constructor(kind: new (length: number) => Numbers) {
    this.#kind = kind
  }

  push(value: number): void {
    const at = this.length % CHUNK_ROWS
    if (at === 0) {
      this.#chunk = new this.#kind(CHUNK_ROWS)
      this.#chunks.push(this.#chunk)
    }
    this.#chunk![at] = value
    this.length++
  }

  /** Into a column of exactly this length. */
  copyTo(target: Uint32Array | Float64Array): void {
    for (const [i, chunk] of this.#chunks.entries())
      target.set(chunk.subarray(0, Math.min(CHUNK_ROWS, this.length - i * CHUNK_ROWS)), i * CHUNK_ROWS)
  }
}
