import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { SampleTable } from './sample-table.js'

/** Files held open between reads; shards are few and large, plain files are opened once each. */
const OPEN_SHARDS = 64

/** Reads of one shard that lie closer than this are one read, in bytes. */
const COALESCE_GAP_BYTES = 64 * 1024
const COALESCE_MAX_BYTES = 4 * 1024 * 1024

/** Reads samples of one folder. Blocking: meant for reader threads and for servers whose disks are local. */
export interface SampleReader {
  /**
   * Reads samples, in the order that suits the disk, and hands over each: `bytes` is valid during the call only.
   * A file that cannot be read or is too short gives undefined.
   */
  readAll(samples: Uint32Array, take: (index: number, bytes: Uint8Array | undefined) => void): void
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
    const fd = openSync(join(root, table.fileName(file)), 'r')
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
  const readRange = (file: number, offset: number, length: number): Uint8Array | undefined => {
    if (scratch.length < length) scratch = Buffer.allocUnsafeSlow(length)
    let fd: number | undefined
    try {
      fd = openFile(file)
      for (let done = 0; done < length; ) {
        const count = readSync(fd, scratch, done, length - done, offset + done)
        if (count === 0) return undefined
        done += count
      }
      return scratch.subarray(0, length)
    } catch {
      return undefined // a file that is gone or unreadable is a status of its samples, not a failure of the request
    } finally {
      if (fd !== undefined && !isSharded) closeSync(fd)
    }
  }

  return {
    readAll(samples, take) {
      if (!isSharded) {
        for (let i = 0; i < samples.length; i++) {
          const sample = samples[i]!
          take(i, readRange(table.files[sample]!, 0, table.lengths[sample]!))
        }
        return
      }
      const indexes = Array.from(samples.keys()).sort((a, b) => {
        const [x, y] = [samples[a]!, samples[b]!]
        return table.files[x]! - table.files[y]! || table.offsets[x]! - table.offsets[y]!
      })
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
        const range = readRange(file, start, end - start)
        for (; at < stop; at++) {
          const sample = samples[indexes[at]!]!
          const from = table.offsets[sample]! - start
          take(indexes[at]!, range?.subarray(from, from + table.lengths[sample]!))
        }
      }
    },
    close() {
      for (const fd of open.values()) closeSync(fd)
      open.clear()
    },
  }
}
