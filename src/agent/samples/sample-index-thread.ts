import { parentPort, workerData } from 'node:worker_threads'
import { isDscError } from '../../failure/dsc-error.js'
import type { FormatName, ToldDialect } from '../../model/sample-formats.js'
import { indexSamples } from '../../samples/index-samples.js'

/** The folder for the thread to index, and how. */
export interface SampleIndexData {
  readonly folder: string
  readonly cacheFolder: string | undefined
  readonly only: readonly string[] | undefined
  readonly format: FormatName | undefined
  readonly dialect: ToldDialect | undefined
}

/** `table` is null if the folder has no samples. */
export type SampleIndexReply = { readonly table: Uint8Array | null } | { readonly failure: string }

if (parentPort) {
  const { folder, ...options } = workerData as SampleIndexData
  // A node serves only what it staged, never the target of a link in it.
  indexSamples(folder, { ...options, links: 'inside' }).then(
    ({ table }) => reply({ table: table.bytes }),
    (error: unknown) => reply(isEmpty(error) ? { table: null } : { failure: String(error) }),
  )
}

/** A node's stripe may have no samples, and may even lack the folder of the split. */
function isEmpty(error: unknown): boolean {
  return isDscError(error, 'SOURCE_EMPTY', 'COPY_NOT_FOUND')
}

function reply(message: SampleIndexReply): void {
  parentPort!.postMessage(message)
}
