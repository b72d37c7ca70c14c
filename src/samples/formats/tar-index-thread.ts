import { parentPort } from 'node:worker_threads'
import { type DscError, describeFailure, isDscError } from '../../failure/dsc-error.js'
import { indexShardsAs, NotSingle, type TarIndexJob, type TarIndexReply } from './index-shards.js'

if (parentPort) parentPort.on('message', (job: TarIndexJob) => parentPort!.postMessage(answer(job)))

function answer({ request, format }: TarIndexJob): TarIndexReply {
  try {
    const { table, damaged } = indexShardsAs(format, request, 'part')
    return { kind: 'indexed', table: table.bytes, damaged }
  } catch (error) {
    if (error instanceof NotSingle) return { kind: 'not-single' }
    if (isDscError(error)) return { kind: 'failed', failure: describeFailure(error as DscError) }
    return { kind: 'broken', message: String(error) }
  }
}
