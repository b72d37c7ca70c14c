import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'
import { type BytePath, toBytes, toText } from '../byte-path.js'
import type { ListedFile } from '../packed-files.js'
import type { LeftOut } from '../plan/sample-files.js'
import type { TableFile } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import { findDisguise, findWideText } from './disguise.js'
import type { IndexedSamples, IndexRequest } from './format.js'

/** Bytes to read at once; more only for a longer record. */
const WINDOW_BYTES = 4 << 20
/** A longer record counts as damage: a feed has 256 MiB for all samples by default. */
const LONGEST_RECORD_BYTES = 256 << 20

export const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a

/** Whether a window is the file's last. */
export type WindowPlace = 'inner' | 'last'

/** Finds the ends of text records. */
export interface RecordEnds {
  /** Loads the next part of the file, which begins with a record; the `last` one ends with the file. */
  load(window: Buffer, place: WindowPlace): void
  /**
   * Index of the line feed that ends the record at `start`, or of the window's end for the last; −1: not in the window.
   */
  find(start: number): number
}

/** A record that cannot be read, which makes the rest unreadable, too. */
export class RecordDamage extends Error {
  /** The step that makes the file readable, if one is known. */
  readonly remedy: string | undefined

  constructor(what: string, remedy?: string) {
    super(what)
    this.remedy = remedy
  }
}

/** How to split and describe the records of one file. */
export interface RecordFormat {
  readonly ends: RecordEnds
  /** Whether a record is not a sample, such as an empty line. */
  readonly isSkipped: (record: Buffer) => boolean
  /** Describes the file from its first record which, if the format has a header, is not a sample. */
  readonly describe: (first: Buffer) => TableFile['encoding']
  readonly hasHeader: boolean
  /** Finds the fault of an unreadable record. `rule`: with `raise`, only faults that are cheap to find. */
  readonly findFault: (
    record: Buffer,
    encoding: TableFile['encoding'],
    rule: IndexRequest['onDamage'],
  ) => string | undefined
}

/** A file to find the format of. */
export interface RecordFile {
  readonly fd: number
  readonly path: BytePath
  /** In bytes. */
  readonly size: number
  /** Its first part, without a byte order mark. */
  readonly head: Buffer
}

/** Bytes to find the format of a file by. */
export const HEAD_BYTES = 256 << 10

/** Lists the records of text files, each a sample, reading every file once from start to end. */
export function indexRecords(
  request: IndexRequest,
  formatOf: (file: RecordFile) => RecordFormat,
): IndexedSamples {
  const { files, onProgress } = request
  const samples = new SampleTableBuilder()
  const damaged: LeftOut[] = []
  const leftOut: LeftOut[] = []
  const tableFiles: TableFile[] = []
  const window = { bytes: Buffer.allocUnsafeSlow(WINDOW_BYTES) }
  for (const [file, listed] of files.entries()) {
    onProgress?.(file, files.length)
    const found = indexFile({ request, file, listed, window, formatOf, samples })
    if (found.damage) damaged.push(found.damage)
    if (found.leftOut) leftOut.push(found.leftOut)
    tableFiles.push({ path: listed.path, rowName: listed.path, encoding: found.encoding })
  }
  return { table: samples.build(tableFiles), damaged, leftOut }
}

function indexFile(options: {
  readonly request: IndexRequest
  readonly file: number
  readonly listed: ListedFile
  readonly window: { bytes: Buffer }
  readonly formatOf: (file: RecordFile) => RecordFormat
  readonly samples: SampleTableBuilder
}): { encoding: TableFile['encoding']; damage?: LeftOut; leftOut?: LeftOut | undefined } {
  const { request, file, listed, window, formatOf, samples } = options
  const { root, onDamage } = request
  const scan = new RecordScan(listed, window)
  const fd = openSync(toBytes(`${root}/${listed.path}`), 'r')
  let format: RecordFormat | undefined
  let encoding: TableFile['encoding'] | undefined
  const faults = new RecordFaults(listed, onDamage)
  try {
    const found = formatOf({ fd, path: listed.path, size: listed.size, head: readHead(fd) })
    format = found
    scan.readAll(fd, found.ends, (record, offset) => {
      if (found.isSkipped(record)) return
      const isFirst = encoding === undefined
      encoding ??= found.describe(record)
      if (isFirst && found.hasHeader) return
      const fault = found.findFault(record, encoding, onDamage)
      if (fault !== undefined) faults.note(fault, offset)
      else samples.addRow({ file, offset, length: record.length, crc32: crc32(record) })
    })
    return { encoding: encoding ?? found.describe(EMPTY), leftOut: faults.leftOut }
  } catch (error) {
    if (!(error instanceof RecordDamage)) throw error
    const damage = noteDamage({ listed, at: scan.at, what: error.message, remedy: error.remedy }, onDamage)
    return { encoding: encoding ?? format?.describe(EMPTY) ?? { format: 'json' }, damage }
  } finally {
    closeSync(fd)
  }
}

const EMPTY = Buffer.alloc(0)

/** Reads the first part of a file. Throws RecordDamage if it is packed, or text in another encoding. */
export function readHead(fd: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES)
  const head = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0))
  const disguise = findDisguise(head) ?? findWideText(head)
  if (disguise) throw new RecordDamage(disguise.what, disguise.remedy)
  return head.subarray(0, 3).equals(BYTE_ORDER_MARK) ? head.subarray(3) : head
}

/** Records of a file that cannot be read: an error each, or left out and counted. */
class RecordFaults {
  readonly #listed: ListedFile
  readonly #rule: IndexRequest['onDamage']
  #first = ''
  #count = 0

  constructor(listed: ListedFile, rule: IndexRequest['onDamage']) {
    this.#listed = listed
    this.#rule = rule
  }

  note(fault: string, at: number): void {
    if (this.#count++ === 0) this.#first = `at byte ${at}: ${fault}`
    if (this.#rule === 'skip') return
    const remedy = 'mend the file, or --on-error skip to leave such records out'
    noteDamage({ listed: this.#listed, at, what: fault, remedy }, this.#rule)
  }

  get leftOut(): LeftOut | undefined {
    if (this.#count === 0) return undefined
    const records = this.#count === 1 ? '1 record' : `${this.#count} records, the first`
    return { path: toText(this.#listed.path), reason: `${records} ${this.#first}` }
  }
}

/** Ends records at line feeds. */
export class LineEnds implements RecordEnds {
  #window = Buffer.alloc(0)
  #isLast = false

  load(window: Buffer<ArrayBuffer>, place: WindowPlace): void {
    this.#window = window
    this.#isLast = place === 'last'
  }

  find(start: number): number {
    const end = this.#window.indexOf(LINE_FEED, start)
    return end < 0 && this.#isLast ? this.#window.length : end
  }
}

/** Describes a damaged file. Throws COPY_DAMAGED if damage is an error. */
export function noteDamage(
  { listed, at, what, remedy }: FileDamage,
  onDamage: IndexRequest['onDamage'],
): LeftOut {
  const path = toText(listed.path)
  if (onDamage === 'skip') return { path, reason: `damaged from byte ${at} on: ${what}` }
  throw new DscError('COPY_DAMAGED', `${path} is damaged at byte ${at}: ${what}`, {
    hint: remedy ?? 'fetch the file again, or --on-error skip to feed what comes before the damage',
  })
}

/** Where a file cannot be read from on, why, and what makes it readable, if that is known. */
interface FileDamage {
  readonly listed: ListedFile
  readonly at: number
  readonly what: string
  readonly remedy?: string | undefined
}

class RecordScan {
  /** Start of the record being read, in bytes. */
  at = 0
  readonly #file: ListedFile
  readonly #window: { bytes: Buffer }

  constructor(file: ListedFile, window: { bytes: Buffer }) {
    this.#file = file
    this.#window = window
  }

  /** Calls `onRecord` with each record, without its line end. */
  readAll(fd: number, ends: RecordEnds, onRecord: (record: Buffer, offset: number) => void): void {
    const { size } = this.#file
    while (this.at < size) {
      const window = this.#fill(fd)
      let start = this.at === 0 && window.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0
      const windowAt = this.at
      ends.load(window, windowAt + window.length >= size ? 'last' : 'inner')
      while (start < window.length) {
        this.at = windowAt + start
        const end = ends.find(start)
        if (end < 0) break
        const last = end > start && window[end - 1] === CARRIAGE_RETURN ? end - 1 : end
        onRecord(window.subarray(start, last), this.at)
        start = end + 1
      }
      if (start >= window.length) this.at = windowAt + start
      else if (this.at === windowAt) this.#enlarge()
    }
  }

  #fill(fd: number): Buffer {
    const { bytes } = this.#window
    const wanted = Math.min(bytes.length, this.#file.size - this.at)
    let filled = 0
    while (filled < wanted) {
      const read = readSync(fd, bytes, filled, wanted - filled, this.at + filled)
      if (read === 0) throw new RecordDamage('the file became shorter while it was indexed')
      filled += read
    }
    return bytes.subarray(0, filled)
  }

  #enlarge(): void {
    const { length } = this.#window.bytes
    if (length >= LONGEST_RECORD_BYTES)
      throw new RecordDamage(`a record of more than ${LONGEST_RECORD_BYTES} bytes`)
    this.#window.bytes = Buffer.allocUnsafeSlow(2 * length)
  }
}
