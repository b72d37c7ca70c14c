import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { unlessRejected } from '../../failure/unless-code.js'
import { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { VerifiedBy } from '../../model/manifest.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../../model/stall-timeout.js'
import { createDigest, type DigestAlgorithm, formatDigest } from '../../proof/digest.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import { nameProof, planProof } from '../../proof/plan-proof.js'
import { proveByUploadParts } from '../../proof/prove-by-upload-parts.js'
import { withRetries } from '../../sources/retry.js'
import type { Fetcher, Source } from '../../sources/source.js'
import { filesDirectory } from '../cache-layout.js'

const READ_BYTES = 1024 * 1024
const NAMED_FILES = 5

/** The files, and the source to compare them with. */
interface ProveOptions {
  readonly source: Source
  readonly copyDirectory: string
  readonly folder: string
  readonly signal: AbortSignal
  readonly onProgress?: (files: number) => void
}

/** How a file was verified against the source, or what is wrong with it. */
type FileProof = { readonly problem: string } | { readonly verifiedBy: VerifiedBy; readonly digest: string }

/**
 * Reads every file named in the manifest of `copyDirectory`, compares it with the source's facts (size, and checksum if
 * there is one) and notes its digest, as a download would. Rejects with COPY_DAMAGED, naming files.
 */
export async function proveFolder(options: ProveOptions): Promise<void> {
  const files = filesDirectory(options.copyDirectory)
  const manifest = Manifest.open(options.copyDirectory)
  const asker = new FactsAsker(options)
  const wrong: string[] = []
  let wrongFiles = 0
  let doneFiles = 0
  try {
    for (const page of manifest.pages('all')) {
      for (const entry of page) {
        throwIfStopped(options.signal)
        const proof = await proveFile(entry, join(files, entry.key), asker)
        if ('problem' in proof) {
          wrongFiles += 1
          if (wrong.length < NAMED_FILES) wrong.push(`${entry.key} ${proof.problem}`)
        } else manifest.finishObject(entry.id, proof.verifiedBy, proof.digest)
        doneFiles += 1
        options.onProgress?.(doneFiles)
      }
    }
  } finally {
    await asker.close()
    manifest.close()
  }
  if (wrongFiles === 0) return
  const more = wrongFiles > wrong.length ? ` and ${wrongFiles - wrong.length} more` : ''
  throw new DscError(
    'COPY_DAMAGED',
    `${options.folder} is not what its source holds: ${wrong.join('; ')}${more}`,
    { hint: 'dsc prepare downloads it again; without --source, dsc adopt takes the folder as it is' },
  )
}

/** Asks the source for facts about the objects of files. */
class FactsAsker {
  readonly #options: ProveOptions
  #fetcher: Fetcher | undefined

  constructor(options: ProveOptions) {
    this.#options = options
  }

  /** Verifies a file by the source's present facts about its object; rejects with CHECKSUM_MISMATCH. */
  async prove(entry: ManifestEntry, path: string): Promise<VerifiedBy> {
    const { source, signal } = this.#options
    this.#fetcher ??= await source.openFetcher({ connections: 1 })
    const fetcher = this.#fetcher
    const { key, etag, versionId, checksum, sizeBytes } = entry
    const request = { key, etag, versionId, checksum, sizeBytes, stallTimeoutMs: DEFAULT_STALL_TIMEOUT_MS }
    const facts = await withRetries(() => fetcher.inspect({ ...request, signal }), { signal })
    return proveByUploadParts({ key, path, sizeBytes, etag }, facts, signal)
  }

  async close(): Promise<void> {
    await this.#fetcher?.close()
  }
}

async function proveFile(entry: ManifestEntry, path: string, asker: FactsAsker): Promise<FileProof> {
  const proof = planProof({ ...entry, partBytes: entry.sizeBytes, facts: suggestFacts(entry) })
  const compared = proof.kind === 'whole' || proof.kind === 'combine' ? proof : undefined
  const read = await digestFile(path, ['sha256', ...(compared ? [compared.algorithm] : [])], entry.sizeBytes)
  if (read === undefined) return { problem: 'is missing' }
  if (read.size !== entry.sizeBytes)
    return { problem: `has ${read.size} bytes instead of ${entry.sizeBytes}` }
  const digest = formatDigest('sha256', read.digests.get('sha256')!)
  if (compared === undefined) return { verifiedBy: 'own-sha256', digest }
  if (read.digests.get(compared.algorithm)!.toString('hex') === compared.expected)
    return { verifiedBy: nameProof(compared), digest }
  try {
    return { verifiedBy: await asker.prove(entry, path), digest }
  } catch (error) {
    if (isDscError(error, 'CHECKSUM_MISMATCH')) return { problem: 'has another checksum' }
    throw error
  }
}

/**
 * Facts that the listing suggests: an etag that looks like an MD5 usually is one. Only a request for the object itself
 * tells for sure.
 */
function suggestFacts({ checksum }: ManifestEntry): ObjectFacts {
  const checksums = checksum ? [{ ...checksum, isComposite: false }] : []
  return { checksums, uploadPartBytes: null, isEtagMd5: true }
}

/** Reads a file once; undefined: it is not there. `sizeBytes`: its expected size. */
async function digestFile(path: string, algorithms: readonly DigestAlgorithm[], sizeBytes: number) {
  await using file = await unlessRejected(['ENOENT', 'ENOTDIR'], open(path, constants.O_RDONLY))
  if (file === undefined) return undefined
  const digests = [...new Set(algorithms)].map((algorithm) => createDigest(algorithm, sizeBytes))
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  let size = 0
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES)
    if (bytesRead === 0) break
    size += bytesRead
    for (const digest of digests) digest.update(buffer.subarray(0, bytesRead))
  }

  return { size, digests: new Map(digests.map((digest) => [digest.algorithm, digest.finish()])) }
}
