import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import { filesDirectory } from './cache-layout.js'
import { createDigest } from './digest/digest.js'
import { openManifest } from './manifest-db.js'
import type { ObjectRow } from './object-row.js'
import { throwIfStopped } from './retry.js'
import { formatDigest } from './transfer/transfer.js'

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
  const db = openManifest(options.copyDirectory)
  const finish = db.prepare('UPDATE object SET state = 1, verified_by = ?, digest = ? WHERE id = ?')
  const page = db.prepare<[number], ObjectRow>('SELECT * FROM object WHERE id > ? ORDER BY id LIMIT 500')
  const wrong: string[] = []
  let wrongFiles = 0
  let doneFiles = 0
  try {
    for (let rows = page.all(0); rows.length > 0; rows = page.all(rows.at(-1)!.id)) {
      for (const row of rows) {
        throwIfStopped(options.signal)
        const proof = await proveFile(row, join(files, row.key))
        if ('problem' in proof) {
          wrongFiles += 1
          if (wrong.length < NAMED_FILES) wrong.push(`${row.key} ${proof.problem}`)
        } else finish.run(proof.verifiedBy, proof.digest, row.id)
        doneFiles += 1
        options.onProgress?.(doneFiles)
      }
    }
  } finally {
    db.close()
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
  row: ObjectRow,
  path: string,
): Promise<{ readonly problem: string } | { readonly verifiedBy: string; readonly digest: string }> {
  const file = await open(path, constants.O_RDONLY).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  })
  if (file === undefined) return { problem: 'is missing' }
  const etagMd5 = row.etag !== null && /^[0-9a-f]{32}$/.test(row.etag) ? row.etag : undefined
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
  if (size !== row.size_bytes) return { problem: `has ${size} bytes instead of ${row.size_bytes}` }
  const digest = formatDigest('sha256', sha256.finish())
  if (etagMd5 === undefined) return { verifiedBy: 'size', digest }
  if (md5.finish().toString('hex') !== etagMd5) return { problem: 'has another MD5' }
  return { verifiedBy: 'etag-md5', digest }
}
