import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'
import { toBytes, toText } from '../byte-path.js'
import type { ListedFile } from '../list-folder.js'
import type { LeftOut } from '../plan/sample-files.js'
import type { TableFile } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import { findDisguise } from './disguise.js'
import type { IndexedSamples, IndexRequest } from './format.js'

/** Bytes to read at once; more only for a longer record. */
const WINDOW_BYTES = 4 << 20
/** A longer record counts as damage: a feed has 256 MiB for all samples by default. */
const LONGEST_RECORD_BYTES = 256 << 20

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const CARRIAGE_RETURN = 0x0d

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
  /** What makes the file readable, if that is known. */
  readonly remedy: string | undefined

  constructor(what: string, remedy?: string) {
    super(what)
    this.remedy = remedy
  }
}

/** How to split and describe the records of a text format. */
interface RecordFormat {
  readonly makeEnds: () => RecordEnds
  /** Whether a record is not a sample, such as an empty line. */
  readonly isSkipped: (record: Buffer) => boolean
  /** Describes the file; if the format has a header, `first` is that record, which is not a sample. */
  readonly describe: (first: Buffer) => TableFile['encoding']
  readonly hasHeader: boolean
}

/** Lists the records of text files, each a sample, reading every file once from start to end. */
export function indexRecords(request: IndexRequest, format: RecordFormat): IndexedSamples {
  const { root, files, onDamage, onProgress } = request
  const samples = new SampleTableBuilder()
  const damaged: LeftOut[] = []
  const tableFiles: TableFile[] = []
  const window = { bytes: Buffer.allocUnsafeSlow(WINDOW_BYTES) }
  for (const [file, listed] of files.entries()) {
    onProgress?.(file, files.length)
    let header: Buffer | undefined
    const scan = new RecordScan(listed, window)
    const fd = openSync(toBytes(`${root}/${listed.path}`), 'r')
    try {
      scan.readAll(fd, format.makeEnds(), (record, offset) => {
        if (format.isSkipped(record)) return
        if (format.hasHeader && header === undefined) header = Buffer.from(record)
        else samples.addRow({ file, offset, length: record.length, crc32: crc32(record) })
      })
    } catch (error) {
      if (!(error instanceof RecordDamage)) throw error
      damaged.push(noteDamage({ listed, at: scan.at, what: error.message, remedy: error.remedy }, onDamage))
    } finally {
      closeSync(fd)
    }
    const encoding = format.describe(header ?? Buffer.alloc(0))
    tableFiles.push({ path: listed.path, rowName: listed.path, encoding })
  }
  return { table: samples.build(tableFiles), damaged }
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
      const disguise = this.at === 0 ? findDisguise(window) : undefined
      if (disguise) throw new RecordDamage(disguise.what, disguise.remedy)
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
