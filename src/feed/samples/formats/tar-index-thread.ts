import { parentPort } from 'node:worker_threads'
import { type DscError, describeFailure, isDscError } from '../../../failure/dsc-error.js'
import type { LeftOut } from '../../plan/sample-files.js'
import type { IndexRequest } from './format.js'
import { indexShardsAs, NotSingle, type ShardFormat } from './tar-shards.js'

/** Some shards that a thread is to index. */
export interface TarIndexJob {
  readonly request: Omit<IndexRequest, 'onProgress'>
  readonly format: ShardFormat
}

/** `table`: bytes in shared memory. `not-single`: these shards must be indexed as `tar`, and so must all others. */
export type TarIndexReply =
  | { readonly kind: 'indexed'; readonly table: Uint8Array; readonly damaged: readonly LeftOut[] }
  | { readonly kind: 'not-single' }
  | { readonly kind: 'failed'; readonly failure: ReturnType<typeof describeFailure> }
  | { readonly kind: 'broken'; readonly message: string }

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
