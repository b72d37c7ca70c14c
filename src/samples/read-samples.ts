import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { openToSend, type SendRule } from '../platform/send-rule.js'
import { crc32 } from '../wasm/crc32.js'
import { type BytePath, fromText, toBytes } from './byte-path.js'
import type { SampleTable } from './sample-table.js'

/** Maximum number of files held open between reads; shards are few and large, plain files are opened once each. */
const OPEN_SHARDS = 64

/**
 * Maximum gap between samples of one shard that are read together, in bytes: copying it costs as much as a read call.
 */
const COALESCE_GAP_BYTES = 16 * 1024
const COALESCE_MAX_BYTES = 4 * 1024 * 1024

/** Receives the bytes of samples, and their results. */
interface SampleSink {
  /** Returns room for exactly the bytes of `samples[index]`, valid until `done(index)`; undefined if not wanted. */
  place(index: number): Uint8Array | undefined
  /** `isRead` is false if the file cannot be read or is too short; the room's content is then undefined. */
  done(index: number, isRead: boolean): void
}

/**
 * Whether `bytes` are the sample in the table. In a table without checksums, the first bytes of a sample are accepted,
 * because their writer has verified them, and their checksum is recorded.
 */
export function isIntact(table: SampleTable, sample: number, bytes: Uint8Array): boolean {
  if (bytes.length !== table.lengths[sample]) return false
  const checksum = crc32(bytes)
  if (!table.known || Atomics.load(table.known, sample) === 1) return checksum === table.crcs[sample]
  Atomics.store(table.crcs, sample, checksum)
  Atomics.store(table.known, sample, 1) // last, as other threads may look
  return true
}

/** Limits of a reader. */
interface ReaderLimits {
  /** Files that the rule does not allow to send cannot be read: the table may come from anybody. */
  readonly rule?: SendRule | undefined
  /** Descriptors of the files, for a table of packed samples; the reader does not close them. */
  readonly held?: readonly number[] | undefined
}

/** Reads the samples of a table below a folder. Blocking: meant for reader threads and for servers with local disks. */
export class SampleReader {
  /** Ends with a slash. Made once, because for small files the path is the main cost of reading besides the calls. */
  readonly #folder: BytePath
  readonly #table: SampleTable
  readonly #limits: ReaderLimits
  readonly #isSharded: boolean
  /** Descriptors of the most recently read shards. */
  readonly #open = new Map<number, number>()
  #scratch = Buffer.allocUnsafeSlow(1 << 20)

  constructor(root: string, table: SampleTable, limits: ReaderLimits = {}) {
    this.#folder = `${fromText(root)}/`
    this.#table = table
    this.#limits = limits
    this.#isSharded = table.isSharded
  }

  /** Returns `samples` in the order that suits the disk, for a caller that reads them in parts. */
  inReadOrder(samples: Uint32Array): Uint32Array {
    return this.#isSharded ? samples.toSorted((x, y) => this.#compare(x, y)) : samples
  }

  /** Reads samples in the order that suits the disk, calling `place` and `done` for one after the other. */
  readAll(samples: Uint32Array, sink: SampleSink): void {
    if (!this.#isSharded) {
      for (let i = 0; i < samples.length; i++) this.#readOne(samples[i]!, i, sink)
      return
    }
    const indexes = Array.from(samples.keys()).sort((a, b) => this.#compare(samples[a]!, samples[b]!))
    for (let at = 0; at < indexes.length; ) {
      const run = this.#findRun(samples, indexes, at)
      if (run.stop === at + 1) this.#readOne(samples[indexes[at]!]!, indexes[at]!, sink)
      else this.#readRun(samples, indexes.slice(at, run.stop), { sink, start: run.start, end: run.end })
      at = run.stop
    }
  }

  /** Closes all open files. */
  close(): void {
    for (const fd of this.#open.values()) closeSync(fd)
    this.#open.clear()
  }

  /** Finds the samples from `at` on that one read of a shard covers: they lie close to each other. */
  #findRun(samples: Uint32Array, indexes: readonly number[], at: number) {
    const { files, offsets, lengths } = this.#table
    const first = samples[indexes[at]!]!
    const start = offsets[first]!
    let end = start + lengths[first]!
    let stop = at + 1
    for (; stop < indexes.length; stop++) {
      const sample = samples[indexes[stop]!]!
      const sampleEnd = offsets[sample]! + lengths[sample]!
      if (files[sample] !== files[first] || offsets[sample]! > end + COALESCE_GAP_BYTES) break
      if (sampleEnd - start > COALESCE_MAX_BYTES) break
      end = Math.max(end, sampleEnd)
    }
    return { start, end, stop }
  }

  #readRun(
    samples: Uint32Array,
    indexes: readonly number[],
    run: { readonly sink: SampleSink; readonly start: number; readonly end: number },
  ): void {
    const { files, offsets, lengths } = this.#table
    const { sink, start, end } = run
    if (this.#scratch.length < end - start) this.#scratch = Buffer.allocUnsafeSlow(end - start)
    const file = files[samples[indexes[0]!]!]!
    const isRead = this.#readRange(file, start, this.#scratch.subarray(0, end - start))
    for (const index of indexes) {
      const sample = samples[index]!
      const from = offsets[sample]! - start
      const target = sink.place(index)
      target?.set(this.#scratch.subarray(from, from + lengths[sample]!))
      if (target) sink.done(index, isRead)
    }
  }

  #readOne(sample: number, index: number, sink: SampleSink): void {
    const { files, offsets } = this.#table
    const target = sink.place(index)
    if (target) sink.done(index, this.#readRange(files[sample]!, offsets[sample]!, target))
  }

  #readRange(file: number, offset: number, target: Uint8Array): boolean {
    let fd: number | undefined
    try {
      fd = this.#openFile(file)
      for (let done = 0; done < target.length; ) {
        const count = readSync(fd, target, done, target.length - done, offset + done)
        if (count === 0) return false
        done += count
      }
      return !this.#isChanged(file, fd)
    } catch {
      return false // a missing or unreadable file is a status of its samples, not a failure of the request
    } finally {
      if (fd !== undefined && !this.#isSharded) closeSync(fd)
    }
  }

  /** Whether a file, just read for the first time, has been written to after it was listed, perhaps during the read. */
  #isChanged(file: number, fd: number): boolean {
    const { known, listedMs } = this.#table
    if (!listedMs || known?.[file] === 1) return false // each file of such a table is one sample
    const { mtimeMs, size } = fstatSync(fd)
    if (size !== this.#table.lengths[file]) return true
    return !Number.isNaN(listedMs[file]) && mtimeMs !== listedMs[file]
  }

  #openFile(file: number): number {
    const held = this.#limits.held?.[file] ?? this.#open.get(file)
    if (held !== undefined) return held
    const path = toBytes(this.#folder + this.#table.rawFileName(file))
    const { rule } = this.#limits
    const fd = rule ? openToSend(path, rule) : openSync(path, 'r')
    if (fd === undefined) throw new Error('it is not to be sent')
    if (!this.#isSharded) return fd
    this.#open.set(file, fd)
    const [oldest] = this.#open
    if (this.#open.size > OPEN_SHARDS && oldest) {
      this.#open.delete(oldest[0])
      closeSync(oldest[1])
    }
    return fd
  }

  #compare(x: number, y: number): number {
    const { files, offsets } = this.#table
    return files[x]! - files[y]! || offsets[x]! - offsets[y]!
  }
}
