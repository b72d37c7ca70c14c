import assert from 'node:assert/strict'
import type { SampleFolder } from '../samples/index-samples.js'
import { isIntact, SampleReader } from '../samples/read-samples.js'

/** The bytes of all samples of a folder, each compared with its checksum. */
export function readAllSamples({ root, table }: Pick<SampleFolder, 'root' | 'table'>): readonly Buffer[] {
  const rooms = Array.from(table.lengths, (length) => Buffer.alloc(length))
  const reader = new SampleReader(root, table)
  reader.readAll(Uint32Array.from(rooms.keys()), {
    place: (sample) => rooms[sample],
    done: (sample, isRead) =>
      assert.ok(isRead && isIntact(table, sample, rooms[sample]!), `sample ${sample}`),
  })
  reader.close()
  return rooms
}
