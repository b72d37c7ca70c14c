import type { Dataset } from '../model/dataset.js'
import { downloadFiles } from '../stage/download-files.js'
import { listIntoManifest } from '../stage/list-into-manifest.js'
import { openS3Source } from '../stage/sources/s3/s3-source.js'

/** Run as a process of its own, to be killed: lists and downloads the dataset in its first argument (JSON). */
const { dataset, copyDirectory, concurrency } = JSON.parse(process.argv[2] ?? '') as {
  dataset: Dataset
  copyDirectory: string
  concurrency: number
}
const source = openS3Source(dataset)
const { signal } = new AbortController()
await listIntoManifest({ source, dataset, copyDirectory, signal })
await downloadFiles({ source, copyDirectory, concurrency, signal })
await source.close()
process.stdout.write('done\n')
