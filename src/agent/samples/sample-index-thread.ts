import { parentPort, workerData } from 'node:worker_threads'
import { isDscError } from '../../failure/dsc-error.js'
import type { FormatName } from '../../model/sample-formats.js'
import { indexSamples } from '../../samples/index-samples.js'

/** What the thread is to index. */
export interface SampleIndexData {
  readonly folder: string
  readonly cacheFolder: string | undefined
  readonly extensions: readonly string[] | undefined
  readonly format: FormatName | undefined
}

/** `table` is null when the folder has no samples. */
export type SampleIndexReply = { readonly table: Uint8Array | null } | { readonly failure: string }

if (parentPort) {
  const { folder, ...options } = workerData as SampleIndexData
  // A node serves what was staged, never what a link in it may lead to.
  indexSamples(folder, { ...options, links: 'inside' }).then(
    ({ table }) => reply({ table: table.bytes }),
    (error: unknown) => reply(isEmpty(error) ? { table: null } : { failure: String(error) }),
  )
}

/** A node's share may have no sample, nor even the folder of the split. */
function isEmpty(error: unknown): boolean {
  return isDscError(error, 'SOURCE_EMPTY', 'COPY_NOT_FOUND')
}

function reply(message: SampleIndexReply): void {
  parentPort!.postMessage(message)
}
