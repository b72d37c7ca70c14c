import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { VerifiedBy } from '../../model/manifest.js'
import { filesDirectory } from '../cache-layout.js'
import { Manifest } from '../manifest/manifest.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { createDigest, formatDigest } from '../proof/digest.js'

const READ_BYTES = 1024 * 1024
const NAMED_FILES = 5

/**
 * Reads every file that the manifest of `copyDirectory` names, compares it with what the source says (size, and
 * MD5 where the etag is one) and notes its digest, as a download would. Rejects with COPY_DAMAGED, naming files.
 */
export async function proveFolder(options: {
  readonly copyDirectory: string
  readonly folder: string
  readonly signal: AbortSignal
  readonly onProgress?: (files: number) => void
}): Promise<void> {
  const files = filesDirectory(options.copyDirectory)
  const manifest = Manifest.open(options.copyDirectory)
  const wrong: string[] = []
  let wrongFiles = 0
  let doneFiles = 0
  try {
    for (const page of manifest.pages('all')) {
      for (const entry of page) {
        throwIfStopped(options.signal)
        const proof = await proveFile(entry, join(files, entry.key))
        if ('problem' in proof) {
          wrongFiles += 1
          if (wrong.length < NAMED_FILES) wrong.push(`${entry.key} ${proof.problem}`)
        } else manifest.finishObject(entry.id, proof.verifiedBy, proof.digest)
        doneFiles += 1
        options.onProgress?.(doneFiles)
      }
    }
  } finally {
    manifest.close()
  }
  if (wrongFiles === 0) return
  const more = wrongFiles > wrong.length ? ` and ${wrongFiles - wrong.length} more` : ''
  throw new DscError(
    'COPY_DAMAGED',
    `${options.folder} is not what its source holds: ${wrong.join('; ')}${more}`,
    {
      hint: 'dsc prepare fetches it anew; or adopt it without --source',
    },
  )
}

async function proveFile(
  entry: ManifestEntry,
  path: string,
): Promise<{ readonly problem: string } | { readonly verifiedBy: VerifiedBy; readonly digest: string }> {
  const file = await open(path, constants.O_RDONLY).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  })
  if (file === undefined) return { problem: 'is missing' }
  const etagMd5 = entry.etag !== null && /^[0-9a-f]{32}$/.test(entry.etag) ? entry.etag : undefined
  const sha256 = createDigest('sha256')
  const md5 = createDigest('md5')
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  let size = 0
  try {
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES)
      if (bytesRead === 0) break
      size += bytesRead
      sha256.update(buffer.subarray(0, bytesRead))
      if (etagMd5 !== undefined) md5.update(buffer.subarray(0, bytesRead))
    }
  } finally {
    await file.close()
  }
  if (size !== entry.sizeBytes) return { problem: `has ${size} bytes instead of ${entry.sizeBytes}` }
  const digest = formatDigest('sha256', sha256.finish())
  if (etagMd5 === undefined) return { verifiedBy: 'own-sha256', digest }
  if (md5.finish().toString('hex') !== etagMd5) return { problem: 'has another MD5' }
  return { verifiedBy: 'etag-md5', digest }
}
