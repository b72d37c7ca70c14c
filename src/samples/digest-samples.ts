import assert from 'node:assert/strict'
import { createHash, type Hash } from 'node:crypto'
import type { TableFile } from './sample-table.js'
import type { TableColumns } from './table-layout.js'

const DIGEST_BYTES = 64 * 1024
const DIGITS = Buffer.from('0123456789abcdef')
const NEWLINE = 0x0a

/** Computes the digest of names, lengths and checksums, in order. */
export function digestSamples(columns: TableColumns, files: readonly TableFile[]): Buffer {
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

/** Gathers short texts for a digest, because each call costs more than one text. Makes no view or string of any. */
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

  /** Adds `\0<length>\0<CRC-32 in hexadecimal>\n`. */
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

/** Quotient of a value below 2^32, avoiding a division of doubles if possible. */
const quotientOf = (value: number, base: 10 | 16): number =>
  base === 16 ? value >>> 4 : ((value >>> 0) / 10) >>> 0
