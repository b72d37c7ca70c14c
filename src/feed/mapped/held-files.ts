import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { fromText, toBytes } from '../../samples/byte-path.js'
import type { SampleTable } from '../../samples/sample-table.js'

/** Maximum number of files to hold open, here and in every client; beyond it, samples go through the feed's memory. */
const MOST_FILES = 4096
const WRITE_BITS = 0o222

/**
 * The files of a table, held open so that clients of this machine map exactly what the feed opened, even if names
 * change. Shrinking a mapped file kills its readers (SIGBUS), and a file written to would be fed unverified. So only
 * files that nobody may write to are held; those of copies and unpacked rows qualify.
 */
export class HeldFiles {
  /** Indexed by the table's file numbers. */
  readonly descriptors: readonly number[]
  readonly #table: SampleTable

  private constructor(table: SampleTable, descriptors: readonly number[]) {
    this.#table = table
    this.descriptors = descriptors
  }

  /** Undefined if samples are whole files, files are too many to hold, or somebody may write to one. */
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

  /** Whether clients would read a feed of this folder by mapping. */
  static areMappable(root: string, table: SampleTable): boolean {
    const held = HeldFiles.find(root, table)
    held?.close()
    return held !== undefined
  }

  /** Folder where clients open the descriptors while this process lives. */
  get folder(): string {
    return `/proc/${process.pid}/fd`
  }

  /** Reads one sample. `target` must have its length. */
  read(sample: number, target: Uint8Array): void {
    const { files, offsets } = this.#table
    readSync(this.descriptors[files[sample]!]!, target, 0, target.length, offsets[sample]!)
  }

  close(): void {
    for (const each of this.descriptors) closeSync(each)
  }
}

/** Returns a descriptor, or undefined if the file cannot be opened or may be written to. */
function openUnwritable(path: Buffer): number | undefined {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, 'r')
    const status = fstatSync(descriptor)
    if (status.isFile() && (status.mode & WRITE_BITS) === 0) return descriptor
  } catch {
    // the path through the feed's memory reports unreadable files sample by sample
  }
  if (descriptor !== undefined) closeSync(descriptor)
  return undefined
}
