import { closeSync, openSync, readSync } from 'node:fs'
import { openToSend, type SendRule } from '../platform/send-rule.js'
import { crc32 } from '../wasm/crc32.js'
import { type BytePath, fromText, toBytes } from './byte-path.js'
import type { SampleTable } from './sample-table.js'

/** Files held open between reads; shards are few and large, plain files are opened once each. */
const OPEN_SHARDS = 64

/** Samples of one shard that lie closer than this are one read, in bytes: copying that costs what a read call does. */
const COALESCE_GAP_BYTES = 16 * 1024
const COALESCE_MAX_BYTES = 4 * 1024 * 1024

/** Where the bytes of one sample go, and what became of them. */
interface SampleSink {
  /** Room for exactly the bytes of `samples[index]`, valid until `done(index)`; undefined when it is not wanted. */
  place(index: number): Uint8Array | undefined
  /** `isRead` is false when the file cannot be read or is too short; the room then holds anything. */
  done(index: number, isRead: boolean): void
}

/**
 * Whether `bytes` are the sample that the table means. In a table without checksums the first bytes of a sample are
 * taken as they are, for whoever wrote them has proven them, and theirs is noted.
 */
export function isIntact(table: SampleTable, sample: number, bytes: Uint8Array): boolean {
  if (bytes.length !== table.lengths[sample]) return false
  const checksum = crc32(bytes)
  if (!table.known || Atomics.load(table.known, sample) === 1) return checksum === table.crcs[sample]
  Atomics.store(table.crcs, sample, checksum)
  Atomics.store(table.known, sample, 1) // last: another thread may look
  return true
}

/** What a reader reads. */
interface ReaderLimits {
  /** What it does not allow to send cannot be read: the table may be anybody's. */
  readonly rule?: SendRule | undefined
  /** Descriptors of the files of a table of packed samples, which are somebody else's to close. */
  readonly held?: readonly number[] | undefined
}

/** Reads the samples of a table below a folder. Blocking: meant for reader threads and for servers whose disks are local. */
export class SampleReader {
  /** Ends with a slash; made once, for of small files the path is what reading costs besides the calls. */
  readonly #folder: BytePath
  readonly #table: SampleTable
  readonly #limits: ReaderLimits
  readonly #isSharded: boolean
  /** Descriptors of the shards that were read last. */
  readonly #open = new Map<number, number>()
  #scratch = Buffer.allocUnsafeSlow(1 << 20)

  constructor(root: string, table: SampleTable, limits: ReaderLimits = {}) {
    this.#folder = `${fromText(root)}/`
    this.#table = table
    this.#limits = limits
    this.#isSharded = table.isSharded
  }

  /** `samples` in the order that suits the disk, for a caller that reads them in parts. */
  inReadOrder(samples: Uint32Array): Uint32Array {
    return this.#isSharded ? samples.toSorted((x, y) => this.#compare(x, y)) : samples
  }

  /** Reads samples in the order that suits the disk, one `place` and `done` after the other. */
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

  /** Closes what is open. */
  close(): void {
    for (const fd of this.#open.values()) closeSync(fd)
    this.#open.clear()
  }

  /** The samples from `at` on that one read of a shard brings: they lie close to each other. */
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
      return true
    } catch {
      return false // a file that is gone or unreadable is a status of its samples, not a failure of the request
    } finally {
      if (fd !== undefined && !this.#isSharded) closeSync(fd)
    }
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
