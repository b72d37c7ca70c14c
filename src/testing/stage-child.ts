import { downloadFiles } from '../cache/download/download-files.js'
import { listIntoManifest } from '../cache/download/list-into-manifest.js'
import { isDscError } from '../failure/dsc-error.js'
import type { Dataset } from '../model/dataset.js'
import { openS3Source } from '../sources/s3/s3-source.js'

/**
 * A separate process, to be killed or put on a small disk: lists and downloads the dataset in its first argument
 * (JSON). Prints one line of JSON: the downloads, or the code and message of the failure.
 */
const { dataset, copyDirectory, ...limits } = JSON.parse(process.argv[2] ?? '') as {
  dataset: Dataset
  copyDirectory: string
  concurrency: number
  cacheMemoryBytes?: number
}
const source = openS3Source(dataset)
const { signal } = new AbortController()
try {
  await listIntoManifest({ source, dataset, copyDirectory, signal })
  const downloaded = await downloadFiles({ source, copyDirectory, ...limits, signal })
  process.stdout.write(`${JSON.stringify(downloaded)}\n`)
} catch (error) {
  if (!isDscError(error)) throw error
  process.stdout.write(`${JSON.stringify({ code: error.code, message: error.message })}\n`)
} finally {
  await source.close()
}
