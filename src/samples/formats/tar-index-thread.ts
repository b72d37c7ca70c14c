import { parentPort } from 'node:worker_threads'
import { serveJobs } from '../../platform/job-threads.js'
import { indexShardsAs, NotSingle, type TarIndexJob, type TarIndexReply } from './index-shards.js'

serveJobs(parentPort, ({ request, format }: TarIndexJob): TarIndexReply => {
  try {
    const { table, damaged } = indexShardsAs(format, request, 'part')
    return { kind: 'indexed', table: table.bytes, damaged }
  } catch (error) {
    if (error instanceof NotSingle) return { kind: 'not-single' }
    throw error
  }
})
