import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Dispatcher, Agent as HttpAgent, request } from 'undici'
import { openPublishedManifest } from '../../manifest-db.js'
import { type ObjectRow, toManifestObject } from '../../object-row.js'
import { formatManifestUrl } from '../../peer-wire.js'
import type { ListedObject } from '../../source.js'
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
    await download(options, join(folder, 'manifest.db'))
    const db = openPublishedManifest(folder)
    try {
      // Ids follow the order of the source's own listing.
      const page = db.prepare<[number], ObjectRow>(
        `SELECT * FROM object WHERE id > ? ORDER BY id LIMIT ${PAGE_OBJECTS}`,
      )
      for (let lastId = 0; ; ) {
        const rows = page.all(lastId)
        if (rows.length === 0) return
        lastId = rows.at(-1)!.id
        yield rows.map(toManifestObject)
      }
    } finally {
      db.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function download(options: Parameters<typeof listPeerManifest>[0], path: string): Promise<void> {
  const { access, signal } = options
  const dispatcher: Dispatcher = new HttpAgent({
    connect: { timeout: 3000, ...(access.ca && { ca: access.ca }) },
  })
  try {
    const { statusCode, headers, body } = await request(
      `${options.url}${formatManifestUrl(options.copyId)}`,
      {
        dispatcher,
        headers: access.token === undefined ? {} : { authorization: `Bearer ${access.token}` },
        headersTimeout: STALL_TIMEOUT_MS,
        bodyTimeout: STALL_TIMEOUT_MS,
        ...(signal ? { signal } : {}),
      },
    )
    if (statusCode !== 200) {
      await body.dump()
      throw new Error(`answered ${statusCode}`)
    }
    const file = createWriteStream(path)
    await pipeline(Readable.from(body), file)
    if (file.bytesWritten !== Number(headers['content-length'])) throw new Error('sent half a manifest')
  } finally {
    await dispatcher.destroy()
  }
}
