import { createHash, randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { askAgentOnce } from '../../http/ask-agent-once.js'
import { Manifest } from '../../manifest/manifest.js'
import { manifestPath } from '../../manifest/manifest-path.js'
import { formatManifestLine } from '../../model/manifest.js'
import { HeldFolder } from '../../platform/held-folder.js'
import { formatManifestUrl } from '../peer-wire.js'
import type { ListedObject } from '../source.js'
import type { PeerAccess } from './peer-connection.js'

const PAGE_OBJECTS = 1000
const STALL_TIMEOUT_MS = 15_000

/**
 * Lists a peer's copy from its manifest, fetched as one file into `scratch`. Rejects, before it lists anything, when
 * the peer does not answer properly.
 */
export async function* listPeerManifest(options: {
  readonly url: string
  readonly copyId: string
  /** Version of the copy in the record, which its objects must have; null: the node is believed. */
  readonly version: string | null
  readonly access: PeerAccess
  /** An existing folder on a disk with room for the manifest. */
  readonly scratch: string
  readonly signal: AbortSignal | undefined
}): AsyncGenerator<readonly ListedObject[]> {
  const scratch = HeldFolder.find(options.scratch)
  if (scratch === undefined) throw new Error(`${options.scratch} is gone`)
  const name = `manifest-${randomBytes(8).toString('hex')}`
  const folder = scratch.makeFolder(name)
  try {
    await download(options, manifestPath(folder.path))
    using manifest = Manifest.openPublished(folder.path)
    if (options.version !== null) requireVersion(manifest, options.version)
    yield* manifest.pages('all', PAGE_OBJECTS)
    yield [...manifest.markers.from('')]
  } finally {
    folder.close()
    await scratch.remove(name)
    scratch.close()
  }
}

async function download(options: Parameters<typeof listPeerManifest>[0], path: string): Promise<void> {
  const answer = await askAgentOnce(`${options.url}${formatManifestUrl(options.copyId)}`, {
    ...options.access,
    connectTimeoutMs: 3000,
    silenceMs: STALL_TIMEOUT_MS,
    signal: options.signal,
  })
  if (answer.statusCode !== 200) {
    answer.destroy()
    throw new Error(`answered ${answer.statusCode}`)
  }
  const file = createWriteStream(path, { flags: 'wx' }) // never through a link planted there
  await pipeline(answer, file)
  if (file.bytesWritten !== Number(answer.headers['content-length'])) throw new Error('sent half a manifest')
}

/** Throws if the manifest was changed after its copy was published: then its etags are no longer the source's. */
function requireVersion(manifest: Manifest, version: string): void {
  const found = digestVersion(manifest)
  if (found !== version)
    throw new Error(`lists version ${found.slice(0, 8)} instead of ${version.slice(0, 8)}`)
}

/** The version that a manifest's objects make. */
function digestVersion(manifest: Manifest): string {
  const digest = createHash('sha256')
  for (const entry of manifest.entriesByKey()) digest.update(formatManifestLine(entry))
  return digest.digest('hex')
}
