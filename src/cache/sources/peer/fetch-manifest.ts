import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { askOnce } from '../../../http/ask-once.js'
import { Manifest } from '../../manifest/manifest.js'
import { manifestPath } from '../../manifest/manifest-file.js'
import { formatManifestUrl } from '../peer-wire.js'
import type { ListedObject } from '../source.js'
import type { PeerAccess } from './peer-connection.js'

const PAGE_OBJECTS = 1000
const STALL_TIMEOUT_MS = 15_000

/**
 * Lists what a peer's copy holds, from its manifest, fetched as one file into `scratch`. Rejects when the peer does
 * not answer well; nothing was listed then.
 */
export async function* listPeerManifest(options: {
  readonly url: string
  readonly copyId: string
  readonly access: PeerAccess
  /** An existing folder on a disk with room for the manifest. */
  readonly scratch: string
  readonly signal: AbortSignal | undefined
}): AsyncGenerator<readonly ListedObject[]> {
  const folder = await mkdtemp(join(options.scratch, '.manifest-'))
  try {
    await download(options, manifestPath(folder))
    const manifest = Manifest.openPublished(folder)
    try {
      yield* manifest.pages('all', PAGE_OBJECTS)
    } finally {
      manifest.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function download(options: Parameters<typeof listPeerManifest>[0], path: string): Promise<void> {
  const answer = await askOnce(`${options.url}${formatManifestUrl(options.copyId)}`, {
    ...options.access,
    connectTimeoutMs: 3000,
    silenceMs: STALL_TIMEOUT_MS,
    signal: options.signal,
  })
  if (answer.statusCode !== 200) {
    answer.destroy()
    throw new Error(`answered ${answer.statusCode}`)
  }
  const file = createWriteStream(path)
  await pipeline(answer, file)
  if (file.bytesWritten !== Number(answer.headers['content-length'])) throw new Error('sent half a manifest')
}
