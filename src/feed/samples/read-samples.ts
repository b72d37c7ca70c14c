import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import type { SampleTable } from './sample-table.js'

/** Files held open between reads; shards are few and large, plain files are opened once each. */
const OPEN_SHARDS = 64

/** Samples of one shard that lie closer than this are one read, in bytes: copying that costs what a read call does. */
const COALESCE_GAP_BYTES = 16 * 1024
const COALESCE_MAX_BYTES = 4 * 1024 * 1024

/** Where the bytes of one sample go, and what became of them. */
export interface SampleSink {
  /** Room for exactly the bytes of `samples[index]`, valid until `done(index)`; undefined when it is not wanted. */
  place(index: number): Uint8Array | undefined
  /** `isRead` is false when the file cannot be read or is too short; the room then holds anything. */
  done(index: number, isRead: boolean): void
}

/** Reads samples of one folder. Blocking: meant for reader threads and for servers whose disks are local. */
export interface SampleReader {
  /** `samples` in the order that suits the disk, for a caller that reads them in parts. */
  inReadOrder(samples: Uint32Array): Uint32Array
  /** Reads samples in the order that suits the disk, one `place` and `done` after the other. */
  readAll(samples: Uint32Array, sink: SampleSink): void
  close(): void
}

/** Whether `bytes` are the sample that the table means. */
export function isIntact(table: SampleTable, sample: number, bytes: Uint8Array): boolean {
  return bytes.length === table.lengths[sample] && crc32(bytes) === table.crcs[sample]
}

export function openSampleReader(root: string, table: SampleTable): SampleReader {
  const open = new Map<number, number>()
  let scratch = Buffer.allocUnsafeSlow(1 << 20)
  const isSharded = table.format !== 'file'

  const openFile = (file: number): number => {
    const held = open.get(file)
    if (held !== undefined) return held
    const fd = openSync(`${root}/${table.fileName(file)}`, 'r')
    if (isSharded) {
      open.set(file, fd)
      const [oldest] = open
      if (open.size > OPEN_SHARDS && oldest) {
        open.delete(oldest[0])
        closeSync(oldest[1])
      }
    }
    return fd
  }
  const readRange = (file: number, offset: number, target: Uint8Array): boolean => {
    let fd: number | undefined
    try {
      fd = openFile(file)
      for (let done = 0; done < target.length; ) {
        const count = readSync(fd, target, done, target.length - done, offset + done)
        if (count === 0) return false
        done += count
      }
      return true
    } catch {
      return false // a file that is gone or unreadable is a status of its samples, not a failure of the request
    } finally {
      if (fd !== undefined && !isSharded) closeSync(fd)
    }
  }
  const readOne = (sample: number, index: number, sink: SampleSink): void => {
    const target = sink.place(index)
    if (target) sink.done(index, readRange(table.files[sample]!, table.offsets[sample]!, target))
  }

  const compare = (x: number, y: number) =>
    table.files[x]! - table.files[y]! || table.offsets[x]! - table.offsets[y]!

  return {
    inReadOrder: (samples) => (isSharded ? samples.toSorted(compare) : samples),
    readAll(samples, sink) {
      if (!isSharded) {
        for (let i = 0; i < samples.length; i++) readOne(samples[i]!, i, sink)
        return
      }
      const indexes = Array.from(samples.keys()).sort((a, b) => compare(samples[a]!, samples[b]!))
      for (let at = 0; at < indexes.length; ) {
        const file = table.files[samples[indexes[at]!]!]!
        const start = table.offsets[samples[indexes[at]!]!]!
        let end = start + table.lengths[samples[indexes[at]!]!]!
        let stop = at + 1
        for (; stop < indexes.length; stop++) {
          const sample = samples[indexes[stop]!]!
          const sampleEnd = table.offsets[sample]! + table.lengths[sample]!
          if (table.files[sample] !== file || table.offsets[sample]! > end + COALESCE_GAP_BYTES) break
          if (sampleEnd - start > COALESCE_MAX_BYTES) break
          end = Math.max(end, sampleEnd)
        }
        if (stop === at + 1) {
          readOne(samples[indexes[at]!]!, indexes[at]!, sink)
          at++
          continue
        }
        if (scratch.length < end - start) scratch = Buffer.allocUnsafeSlow(end - start)
        const isRead = readRange(file, start, scratch.subarray(0, end - start))
        for (; at < stop; at++) {
          const index = indexes[at]!
          const sample = samples[index]!
          const from = table.offsets[sample]! - start
          const target = sink.place(index)
          target?.set(scratch.subarray(from, from + table.lengths[sample]!))
          if (target) sink.done(index, isRead)
        }
      }
    },
    close() {
      for (const fd of open.values()) closeSync(fd)
      open.clear()
    },
  }
}
