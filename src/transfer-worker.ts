import { parentPort, workerData } from 'node:worker_threads'
import { keepCredentials } from './stage/sources/s3/keep-credentials.js'
import { openS3Fetcher, type S3Location } from './stage/sources/s3/s3-fetcher.js'
import type { Credentials } from './stage/sources/s3/sign-request.js'
import { serveTransfers } from './stage/transfer/serve-transfers.js'
import type { WorkerSetup } from './stage/transfer/worker-wire.js'

// The file that transfer threads run, bundled so that it loads at once. Location and credentials come from the S3
// source of the main thread as they are.
const setup = workerData as WorkerSetup
serveTransfers(parentPort!, setup, (askCredentials) =>
  openS3Fetcher(
    setup.location as S3Location,
    setup.isAnonymous ? () => undefined : keepCredentials(askCredentials as () => Promise<Credentials>),
    { connections: setup.connections },
  ),
)
