import type { ReaderPool } from '../reader-pool.js'
import type { SampleTable } from '../samples/sample-table.js'
import type { SampleSource } from './sample-source.js'

/** A request is read in parts of about this many bytes, so that threads share it and its first samples come early. */
const PART_BYTES = 1 << 20

/** Samples of a folder on this machine, read by the pool's threads: one node that holds everything. */
export function createLocalSource(root: string, table: SampleTable, pool: ReaderPool): SampleSource {
  return {
    table,
    layout: 'full',
    origin: 'local',
    nodeCount: 1,
    nodeName: () => root,
    async read({ samples, offsets }, onSample) {
      const readPart = async (start: number, end: number) => {
        const part = { samples: samples.slice(start, end), offsets: offsets.slice(start, end) }
        const result = await pool.run({ kind: 'read', ...part })
        if (result.kind !== 'read') return
        for (const [i, status] of result.statuses.entries())
          onSample(start + i, status === 0 ? 'ok' : status === 1 ? 'missing' : 'corrupt')
      }
      const parts: Promise<void>[] = []
      for (let start = 0, end = 0; start < samples.length; start = end) {
        for (let bytes = 0; end < samples.length && bytes < PART_BYTES; end++)
          bytes += table.lengths[samples[end]!]!
        parts.push(readPart(start, end))
      }
      // All have ended before the request does: what a thread still writes to must not be given away.
      const failed = (await Promise.allSettled(parts)).find((each) => each.status === 'rejected')
      if (failed) throw failed.reason
    },
    close: async () => {},
  }
}
