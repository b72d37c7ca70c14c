import {
  closeSync,
  constants,
  copyFileSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { atEndNow } from '../../failure/closers.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { ObjectChecksum, VerifiedBy } from '../../model/manifest.js'
import { changeFileMode, onHeldPath } from '../../platform/held-path.js'
import { createDigest, formatDigest } from '../../proof/digest.js'
import { nameChecksum } from '../../proof/plan-proof.js'
import type { KeptRepository } from '../cache.js'
import { filesDirectory } from '../cache-layout.js'

const READ_BYTES = 1024 * 1024
const READS_BETWEEN_BREATHS = 32
const ETAG = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/

/**
 * Takes objects from what the clients of hubs keep. On disks without symbolic links they have no blobs: each snapshot
 * then holds its files itself. Copies the file (by reflink where the file system can) and keeps it if it has the
 * checksum that the source lists. It links none: the folder's owner may still write to it.
 */
export async function reuseBlobs(
  manifest: Manifest,
  from: { readonly copy: string; readonly kept: KeptRepository },
  signal: AbortSignal,
): Promise<{ readonly reusedFiles: number; readonly reusedBytes: number }> {
  const counts = { reusedFiles: 0, reusedBytes: 0 }
  const { directory, within } = from.kept
  const snapshots = listFolder(join(directory, 'snapshots')).map((name) =>
    join(directory, 'snapshots', name, within),
  )
  if (snapshots.length === 0 && listFolder(join(directory, 'blobs')).length === 0) return counts
  const folders = { copy: from.copy, blobs: join(directory, 'blobs'), snapshots }
  for (const page of manifest.pages('missing')) {
    for (const entry of page) {
      throwIfStopped(signal)
      const taken = await takeBlob(entry, folders, signal)
      if (taken === undefined) continue
      manifest.finishObject(entry.id, taken.verifiedBy, taken.digest)
      counts.reusedFiles += 1
      counts.reusedBytes += entry.sizeBytes
    }
  }
  return counts
}

interface TakenBlob {
  readonly verifiedBy: VerifiedBy
  readonly digest: string
}

/** Undefined: there is no such file, or its content does not match the checksum. */
async function takeBlob(
  entry: ManifestEntry,
  folders: { readonly copy: string; readonly blobs: string; readonly snapshots: readonly string[] },
  signal: AbortSignal,
): Promise<TakenBlob | undefined> {
  const { key, etag, checksum, sizeBytes, partBytes } = entry
  if (etag === null || !ETAG.test(etag) || checksum === null || partBytes !== null) return undefined
  const target = join(filesDirectory(folders.copy), key)
  const places = [join(folders.blobs, etag), ...folders.snapshots.map((snapshot) => join(snapshot, key))]
  for (const place of places) {
    const stats = statSync(place, { throwIfNoEntry: false })
    if (!stats?.isFile() || stats.size !== sizeBytes || !copyBlob(place, target)) continue
    const taken = await checkBlob(target, { checksum, sizeBytes }, signal)
    if (taken) return taken
  }
  return undefined
}

/** Removes the file if it does not have the checksum. */
async function checkBlob(
  target: string,
  { checksum, sizeBytes }: { readonly checksum: ObjectChecksum; readonly sizeBytes: number },
  signal: AbortSignal,
): Promise<TakenBlob | undefined> {
  const digests = [createDigest('sha256')]
  if (checksum.algorithm !== 'sha256') digests.push(createDigest(checksum.algorithm, sizeBytes))
  const take = (chunk: Uint8Array) => {
    for (const digest of digests) digest.update(chunk)
  }
  await readInto(target, take, signal)
  const [sha256, other = sha256] = digests.map((digest) => digest.finish())
  if (other!.toString('base64') === checksum.value) {
    onHeldPath(target, (path) => changeFileMode(path, 0o444))
    return { verifiedBy: nameChecksum(checksum.algorithm), digest: formatDigest('sha256', sha256!) }
  }
  onHeldPath(target, (path) => rmSync(path))
  return undefined
}

/** False: this user may not read it, or it is gone. Replaces a file left by a killed attempt. */
function copyBlob(blob: string, target: string): boolean {
  return onHeldPath(
    target,
    (path) => {
      try {
        if (lstatSync(path, { throwIfNoEntry: false })) rmSync(path)
        copyFileSync(blob, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
        return true
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? ''
        if (code === 'ENOSPC' || code === 'EDQUOT') throw error
        return false
      }
    },
    { makesFolders: true },
  )
}

async function readInto(path: string, take: (chunk: Uint8Array) => void, signal: AbortSignal): Promise<void> {
  const descriptor = onHeldPath(path, (held) => openSync(held, constants.O_RDONLY | constants.O_NOFOLLOW))
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  using _ = atEndNow(() => closeSync(descriptor))
  for (let reads = 1; ; reads += 1) {
    const bytes = readSync(descriptor, buffer, 0, READ_BYTES, null)
    if (bytes === 0) return
    take(buffer.subarray(0, bytes))
    if (reads % READS_BETWEEN_BREATHS !== 0) continue
    await new Promise(setImmediate) // lets signals and progress through
    throwIfStopped(signal)
  }
}

/** Its names; none if there is no such folder, or this user may not read it. */
function listFolder(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
