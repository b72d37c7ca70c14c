/** The space a copy will take, counted as the file system counts. */
export interface CopyNeeds {
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
export function roundToBlocks(sizeBytes: number, blockBytes: number): number {
  return Math.ceil(sizeBytes / blockBytes) * blockBytes
}

/** Space that a directory takes in whole blocks, in bytes. `nameBytes` is the sum over its entries' names. */
export function planDirectoryBytes(entries: number, nameBytes: number, blockBytes: number): number {
  const bytes = (entries * DIRECTORY_ENTRY_BYTES + nameBytes) * DIRECTORY_SLACK
  return Math.max(blockBytes, roundToBlocks(bytes, blockBytes))
}

/** Upper bound of the space that the finished copy and its download take together. */
export function planNeeds(tree: {
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
