import { parentPort } from 'node:worker_threads'
import { isDscError } from '../../../failure/dsc-error.js'
import { ParquetFile } from './parquet-file.js'
import { type UnpackJob, unpackFile } from './unpack-file.js'

/** Work for a thread. `inspect` reads a footer. */
export type RowsJob =
  | (Pick<UnpackJob, 'path' | 'shown' | 'columns'> & { readonly kind: 'inspect' })
  | (UnpackJob & { readonly kind: 'unpack' })

/** What a footer says of the chosen columns. */
export interface InspectedFile {
  readonly rowCount: number
  /** About what the rows take. */
  readonly unpackedBytes: number
}

/** Tells that a job goes on. */
export type RowsMessage = RowsResult | 'alive'

/** `failed` carries what a DscError, or the system's error, is made of. */
export type RowsResult =
  | ({ readonly kind: 'inspect' } & InspectedFile)
  | { readonly kind: 'unpack'; readonly bytes: number }
  | { readonly kind: 'failed'; readonly failure: RowsFailure }

/** An error on its way out of a thread. */
export interface RowsFailure {
  readonly isDscError: boolean
  readonly code: string | undefined
  readonly message: string
  readonly hint: string | undefined
}

async function run(job: RowsJob): Promise<RowsResult> {
  if (job.kind === 'unpack')
    return { kind: 'unpack', bytes: await unpackFile(job, () => parentPort!.postMessage('alive')) }
  const file = await ParquetFile.open({ ...job, path: Buffer.from(job.path) })
  try {
    const unpackedBytes = file.groups.reduce((sum, group) => sum + group.unpackedBytes, 0)
    return { kind: 'inspect', rowCount: file.rowCount, unpackedBytes }
  } finally {
    file.close()
  }
}

function describe(error: unknown): RowsFailure {
  const { code, message, hint } = error as { code?: string; message: string; hint?: string }
  return { isDscError: isDscError(error), code, message, hint }
}

parentPort?.on('message', (job: RowsJob) => {
  run(job)
    .catch((error: unknown): RowsResult => ({ kind: 'failed', failure: describe(error) }))
    .then((result) => parentPort!.postMessage(result satisfies RowsMessage))
})
