import { parentPort } from 'node:worker_threads'
import { serveJobs } from '../../platform/job-threads.js'
import { indexShardsAs, NotSingle, type TarIndexJob, type TarIndexReply } from './index-shards.js'

serveJobs(parentPort, ({ request, format }: TarIndexJob): TarIndexReply => {
  try {
    const { table, damaged, leftOut = [] } = indexShardsAs(format, request, 'part')
    return { kind: 'indexed', table: table.bytes, damaged, leftOut }
  } catch (error) {
    if (error instanceof NotSingle) return { kind: 'not-single' }
    throw error
  }
})
