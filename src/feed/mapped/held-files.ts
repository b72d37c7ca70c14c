import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { fromText, toBytes } from '../../samples/byte-path.js'
import type { SampleTable } from '../../samples/sample-table.js'

/** More files are not held open, here and by every client: their samples go through the feed's memory. */
const MOST_FILES = 4096
const WRITE_BITS = 0o222

/**
 * The files of a table, held open so that clients of this machine map what the feed opened, whatever becomes of the
 * names. A mapped file that shrinks kills whoever reads it (SIGBUS), and one that is written to is fed unproven: so
 * only files that nobody may write to are held, as those of copies and unpacked rows are.
 */
export class HeldFiles {
  /** By the numbers of the table. */
  readonly descriptors: readonly number[]
  readonly #table: SampleTable

  private constructor(table: SampleTable, descriptors: readonly number[]) {
    this.#table = table
    this.descriptors = descriptors
  }

  /** Undefined where samples are whole files, too many to hold, or of files that somebody may write to. */
  static find(root: string, table: SampleTable): HeldFiles | undefined {
    const isPacked = table.encodings.length > 0 && table.encodings.every(({ format }) => format !== 'file')
    if (!isPacked || table.fileCount > MOST_FILES) return undefined
    const descriptors: number[] = []
    for (let file = 0; file < table.fileCount; file++) {
      const descriptor = openUnwritable(toBytes(`${fromText(root)}/${table.rawFileName(file)}`))
      if (descriptor === undefined) {
        for (const each of descriptors) closeSync(each)
        return undefined
      }
      descriptors.push(descriptor)
    }
    return new HeldFiles(table, descriptors)
  }

  /** Whether a feed of this folder would be read by mapping. */
  static areMappable(root: string, table: SampleTable): boolean {
    const held = HeldFiles.find(root, table)
    held?.close()
    return held !== undefined
  }

  /** Where clients open the descriptors while this process lives. */
  get folder(): string {
    return `/proc/${process.pid}/fd`
  }

  /** Reads one sample. `target` has its length. */
  read(sample: number, target: Uint8Array): void {
    const { files, offsets } = this.#table
    readSync(this.descriptors[files[sample]!]!, target, 0, target.length, offsets[sample]!)
  }

  close(): void {
    for (const each of this.descriptors) closeSync(each)
  }
}

/** A descriptor, or undefined where the file cannot be opened or may be written to. */
function openUnwritable(path: Buffer): number | undefined {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, 'r')
    const status = fstatSync(descriptor)
    if (status.isFile() && (status.mode & WRITE_BITS) === 0) return descriptor
  } catch {
    // what cannot be read is told sample by sample, by the way through the feed's memory
  }
  if (descriptor !== undefined) closeSync(descriptor)
  return undefined
}
