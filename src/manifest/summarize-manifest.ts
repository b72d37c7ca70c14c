import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEndNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import { formatManifestLine } from '../model/manifest.js'
import { planPartBytes } from '../proof/plan-parts.js'
import type { Manifest } from './manifest.js'
import { manifestPath } from './manifest-path.js'

interface OpenDirectory {
  /** Ends in `/`. */
  readonly path: string
  entries: number
  nameBytes: number
}

/**
 * Reads a complete listing once, in the byte order of keys: computes the version and the space that the copy will take,
 * and refuses keys that cannot be files side by side. The keys below one folder are neighbors in that order, so a stack
 * of open folders is all it remembers. `list`: no files are made of the keys, and none are refused.
 */
export function summarizeManifest(
  manifest: Manifest,
  copyDirectory: string,
  unsafeKeys: 'refuse' | 'list' = 'refuse',
): CopyNeeds & { readonly version: string } {
  const isRefusing = unsafeKeys === 'refuse'
  if (isRefusing) refuseEqualNames(manifest, copyDirectory)
  const blockBytes = Number(statfsSync(copyDirectory).bsize) || 4096
  const digest = createHash('sha256')
  const root: OpenDirectory = { path: '', entries: 0, nameBytes: 0 }
  const open = [root]
  const sums = { fileBlockBytes: 0, files: 0, parts: 0, directoryBlockBytes: 0, directories: 0 }
  const close = (directory: OpenDirectory) => {
    sums.directoryBlockBytes += planDirectoryBytes(directory.entries, directory.nameBytes, blockBytes)
  }
  for (const entry of manifest.entriesByKey()) {
    digest.update(formatManifestLine(entry))
    if (entry.state === 'elsewhere') continue
    sums.files += 1
    sums.fileBlockBytes += roundToBlocks(entry.sizeBytes, blockBytes)
    const partBytes = planPartBytes(entry.sizeBytes, null)
    if (entry.sizeBytes > partBytes) sums.parts += Math.ceil(entry.sizeBytes / partBytes)
    while (!entry.key.startsWith(open.at(-1)!.path)) close(open.pop()!)
    for (let slash = nextSlash(entry.key, open); slash !== -1; slash = nextSlash(entry.key, open)) {
      const path = entry.key.slice(0, slash + 1)
      if (isRefusing && manifest.has(path.slice(0, -1)))
        throw refuse(
          `${JSON.stringify(path.slice(0, -1))} is an object and also the folder of ${JSON.stringify(entry.key)}`,
        )
      addEntry(open.at(-1)!, path.slice(open.at(-1)!.path.length, -1))
      open.push({ path, entries: 0, nameBytes: 0 })
      sums.directories += 1
    }
    addEntry(open.at(-1)!, entry.key.slice(open.at(-1)!.path.length))
  }
  for (const directory of open) close(directory)
  const manifestBytes = statSync(manifestPath(copyDirectory)).size + walBytes(copyDirectory)
  return { version: digest.digest('hex'), ...planNeeds({ ...sums, manifestBytes, blockBytes }) }
}

function nextSlash(key: string, open: readonly OpenDirectory[]): number {
  return key.indexOf('/', open.at(-1)!.path.length)
}

function addEntry(directory: OpenDirectory, name: string): void {
  directory.entries += 1
  directory.nameBytes += Buffer.byteLength(name)
}

function walBytes(copyDirectory: string): number {
  return statSync(`${manifestPath(copyDirectory)}-wal`, { throwIfNoEntry: false })?.size ?? 0
}

/** On a file system that ignores case, keys that differ only in case would overwrite each other. */
function refuseEqualNames(manifest: Manifest, copyDirectory: string): void {
  if (!ignoresCase(copyDirectory)) return
  const names = manifest.findEqualNames()
  if (names)
    throw refuse(
      `${JSON.stringify(names.first)} and ${JSON.stringify(names.last)} are one name on a file system that ignores case`,
    )
}

function ignoresCase(directory: string): boolean {
  const probe = mkdtempSync(join(directory, 'case-probe-'))
  using _ = atEndNow(() => rmSync(probe, { recursive: true }))
  writeFileSync(join(probe, 'a'), '')
  writeFileSync(join(probe, 'A'), '')
  return readdirSync(probe).length === 1
}

function refuse(problem: string): DscError {
  return new DscError('KEY_UNSAFE', `cannot become files: ${problem}`, {
    hint: 'rename one of them, or list one under exclude: a pattern equal to a key matches it',
  })
}

/** The space a copy will take, counted as the file system counts. */
interface CopyNeeds {
  readonly neededBytes: number
  readonly neededInodes: number
}

const DIRECTORY_ENTRY_BYTES = 12 // header of an ext4 entry, its name comes on top
/** Hashed directories split at random, so their blocks are about two thirds full. */
const DIRECTORY_SLACK = 1.6
const STATE_BYTES_PER_OBJECT = 96 // digest, proof and state, written while downloading
const STATE_BYTES_PER_PART = 128
const JOURNAL_BYTES = 8 * 1024 * 1024

/** Space that a file of `sizeBytes` takes in whole blocks, in bytes. */
function roundToBlocks(sizeBytes: number, blockBytes: number): number {
  return Math.ceil(sizeBytes / blockBytes) * blockBytes
}

/** Space that a directory takes in whole blocks, in bytes. `nameBytes` is the sum over its entries' names. */
function planDirectoryBytes(entries: number, nameBytes: number, blockBytes: number): number {
  const bytes = (entries * DIRECTORY_ENTRY_BYTES + nameBytes) * DIRECTORY_SLACK
  return Math.max(blockBytes, roundToBlocks(bytes, blockBytes))
}

/** Upper bound of the space that the finished copy and its download take together. */
function planNeeds(tree: {
  readonly fileBlockBytes: number
  readonly files: number
  readonly parts: number
  readonly directoryBlockBytes: number
  readonly directories: number
  readonly manifestBytes: number
  readonly blockBytes: number
}): CopyNeeds {
  const stateBytes = tree.files * STATE_BYTES_PER_OBJECT + tree.parts * STATE_BYTES_PER_PART
  const manifestBytes = roundToBlocks(tree.manifestBytes + stateBytes + JOURNAL_BYTES, tree.blockBytes)
  const ownDirectories = 2 // the copy's and `files`
  return {
    neededBytes:
      tree.fileBlockBytes + tree.directoryBlockBytes + manifestBytes + ownDirectories * tree.blockBytes,
    neededInodes: tree.files + tree.directories + ownDirectories + 3, // manifest.db, -wal, -shm
  }
}
