import { opendir } from 'node:fs/promises'
import { join } from 'node:path'

interface TreeEntry {
  /** Absolute. */
  readonly path: string
  readonly kind: 'file' | 'directory' | 'other'
}

/** Yields everything below a directory, folders before their contents; yields symlinks, but never follows them. */
export async function* walkTree(directory: string): AsyncGenerator<TreeEntry> {
  const folders = [directory]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of await opendir(folder, { bufferSize: 256 })) {
      const path = join(folder, entry.name)
      const kind = entry.isDirectory() ? 'directory' : entry.isFile() ? 'file' : 'other'
      if (kind === 'directory') folders.push(path)
      yield { path, kind }
    }
  }
}
