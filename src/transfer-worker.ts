import { parentPort } from 'node:worker_threads'
import { serveTransfers } from './cache/download/transfer/serve-transfers.js'
import type { SourceScheme } from './model/source-url.js'
import { openFileFetcher } from './sources/file/file-fetcher.js'
import { openHubFetcher } from './sources/hf/hub-fetcher.js'
import { openOciFetcher } from './sources/oci/oci-fetcher.js'
import { createPeerOpener } from './sources/peer/peer-thread.js'
import { openS3Fetcher } from './sources/s3/s3-fetcher.js'
import type { OpenFetcher } from './sources/source.js'
import { openWebFetcher } from './sources/web/web-source.js'

// The file that transfer threads run, bundled so that it loads at once. What a thread reads is described by the
// source of the main thread, by scheme.
const fetchers: Readonly<Record<SourceScheme, OpenFetcher>> = {
  s3: openS3Fetcher,
  file: openFileFetcher,
  hf: openHubFetcher,
  oci: openOciFetcher,
  https: openWebFetcher,
  http: openWebFetcher,
}

serveTransfers(parentPort!, { ...fetchers, peers: createPeerOpener(fetchers) })
