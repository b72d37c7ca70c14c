import type { ReaderPool } from '../reader-pool.js'
import type { SampleTable } from '../samples/sample-table.js'
import type { SampleSource } from './sample-source.js'

/** Samples of a folder on this machine, read by the pool's threads: one node that holds everything. */
export function createLocalSource(root: string, table: SampleTable, pool: ReaderPool): SampleSource {
  return {
    table,
    layout: 'full',
    origin: 'local',
    nodeCount: 1,
    nodeName: () => root,
    async read({ samples, offsets }, onSample) {
      const result = await pool.run({ kind: 'read', samples, offsets })
      if (result.kind !== 'read') return
      for (let i = 0; i < samples.length; i++)
        onSample(i, result.statuses[i] === 0 ? 'ok' : result.statuses[i] === 1 ? 'missing' : 'corrupt')
    },
    close: async () => {},
  }
}
