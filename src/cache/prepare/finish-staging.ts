import { access } from 'node:fs/promises'
import { formatByteSize } from '../../model/byte-size.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import type { Origins } from '../../sources/source.js'
import type { Cache } from '../cache.js'
import { copyDirectory, filesDirectory, stagingDirectoryOf } from '../cache-layout.js'
import type { Downloaded } from '../download/download-files.js'
import { measureCopy } from '../download/measure-copy.js'
import { publishCopy } from '../download/publish-copy.js'
import { discardDirectory, publishedDirectoryOf } from '../eviction/finish-evictions.js'
import type { StageTurn } from './join-staging.js'

/** Result of a download, with its origins if not all of it came from the store. */
type Fetched = Downloaded & { readonly origins?: Origins | undefined }

/** `lost`: another stager took over; look at the record again. `reserved`: admitted, nothing fetched. */
export type Staged =
  | {
      readonly outcome: 'ready'
      readonly copy: Copy
      readonly isNew: boolean
      readonly downloaded?: Fetched | undefined
    }
  | { readonly outcome: 'reserved'; readonly version: string }
  | { readonly outcome: 'lost' }

/** Publishes the download, then marks the copy as ready in the record. */
export async function finishStaging(
  cache: Cache,
  turn: StageTurn,
  { version, fetched }: { readonly version: string; readonly fetched: Fetched },
): Promise<Staged> {
  const directory = await publish(cache, turn.copy, version)
  const reason = `${describeDownload(fetched)}${describeOrigins(fetched.origins)}`
  return markReady(cache, turn, { directory, reason, fetched })
}

/** Marks as ready a copy whose stager was killed between publishing and marking it, and returns it. */
export async function finishPublished(cache: Cache, turn: StageTurn): Promise<Staged | undefined> {
  const directory = publishedDirectoryOf(cache, turn.copy)
  if (directory === undefined || !(await exists(directory))) return undefined
  if (await exists(stagingDirectoryOf(cache.root, turn.copy.copyId))) return undefined
  const reason = 'published by a stager that was killed before it could say so'
  return markReady(cache, turn, { directory, reason })
}

/**
 * Gives the copy its final name, which is unique to it; first removes leftovers of an earlier attempt under that name.
 */
async function publish(cache: Cache, copy: Copy, version: string): Promise<string> {
  const finalDirectory = copyDirectory(cache.root, { ...copy, version })
  if (await exists(finalDirectory)) await discardDirectory(cache, finalDirectory)
  const staged = stagingDirectoryOf(cache.root, copy.copyId)
  await publishCopy({ root: cache.root, copyDirectory: staged, finalDirectory })
  return finalDirectory
}

async function markReady(
  cache: Cache,
  turn: StageTurn,
  published: {
    readonly directory: string
    readonly reason: string
    /** Absent: an earlier stager downloaded it, and its figures are lost. */
    readonly fetched?: Fetched
  },
): Promise<Staged> {
  const { directory, reason, fetched } = published
  const measured = await measureCopy(directory)
  const isReady = await cache.record.markReady(
    {
      copyId: turn.copy.copyId,
      stageLeaseId: turn.stageLeaseId,
      directory,
      path: filesDirectory(directory),
      origin: isFromPeers(fetched?.origins) ? 'peer' : undefined,
      chargedBytes: measured.diskBytes,
      chargedInodes: measured.inodes,
      reason,
      detail: { ...fetched },
    },
    cache.nowMs(),
  )
  if (!isReady) return { outcome: 'lost' }
  const [copy] = await cache.record.listCopies({ copyId: turn.copy.copyId }, cache.nowMs())
  if (copy === undefined) return { outcome: 'lost' }
  return { outcome: 'ready', copy, isNew: true, downloaded: fetched }
}

/** Whether most of the bytes came from peers. */
function isFromPeers(origins: Origins | undefined): boolean {
  if (origins === undefined) return false
  const fromPeers = Object.values(origins.peerBytes).reduce((sum, bytes) => sum + bytes, 0)
  return fromPeers > origins.storeBytes
}

function describeOrigins(origins: Origins | undefined): string {
  const peers = Object.entries(origins?.peerBytes ?? {}).map(
    ([node, bytes]) => `${formatByteSize(bytes)} from ${node}`,
  )
  const failed = Object.entries(origins?.failed ?? {}).map(([node, problem]) => `; ${node} ${problem}`)
  if (origins === undefined || peers.length + failed.length === 0) return ''
  return `; ${[`${formatByteSize(origins.storeBytes)} from the store`, ...peers].join(', ')}${failed.join('')}`
}

function describeDownload(downloaded: Downloaded): string {
  const verified = Object.entries(downloaded.verifiedBy)
    .map(([method, files]) => `${files} by ${method}`)
    .join(', ')
  return `fetched ${formatCount(downloaded.fetchedFiles, 'file')}, ${formatByteSize(downloaded.fetchedBytes)}; reused ${formatByteSize(downloaded.reusedBytes)}; verified ${verified || 'nothing'}`
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
