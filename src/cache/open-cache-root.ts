import { link, rename, unlink, writeFile } from 'node:fs/promises'
import { atEnd } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import { makeFolder, readableLikeFolder } from '../platform/shared-folder.js'
import { readCacheIdentity } from './cache-identity.js'
import {
  copiesDirectory,
  identityFile,
  LAYOUT_VERSION,
  stagingDirectory,
  trashDirectory,
} from './cache-layout.js'

/**
 * Creates missing folders of the cache root and checks that it belongs to this cache and has this layout. Its identity
 * file also tells an empty mount point from the disk that belongs there: if the record has copies, a root without
 * identity means a missing disk. From here on, this process creates files and folders as readable to others as the root is.
 * Resolves with the random id of this cache.
 */
export async function openCacheRoot(
  root: string,
  options: { readonly hasCopies: () => Promise<boolean> },
): Promise<string> {
  const identity = readCacheIdentity(root)
  if (identity !== undefined) {
    if (identity.layout === LAYOUT_VERSION) {
      readableLikeFolder(root)
      return typeof identity.id === 'string' ? identity.id : renewCacheId(root)
    }
    throw new DscError(
      'CACHE_ROOT_INVALID',
      `${root} has cache layout ${String(identity.layout)}, this dsc knows layout ${LAYOUT_VERSION}`,
      { hint: 'use the dsc version that wrote it, or set another cache.root' },
    )
  }
  if (await options.hasCopies()) {
    throw new DscError(
      'CACHE_ROOT_INVALID',
      `${root} is not the cache that the record knows: ${identityFile(root)} is missing. Is its disk mounted?`,
      {
        hint: `mount the disk; if the cache was deleted on purpose: dsc record claim-node, then dsc cleanup`,
      },
    )
  }
  try {
    makeFolder(root)
    readableLikeFolder(root)
    for (const directory of [copiesDirectory(root), stagingDirectory(root), trashDirectory(root)]) {
      makeFolder(directory)
    }
    const id = crypto.randomUUID()
    await writeFirst(identityFile(root), formatIdentity({ id }))
    return id
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return openCacheRoot(root, options) // another process was first
    throw new DscError('CACHE_ROOT_INVALID', `cannot make the cache in ${root} (${code})`, {
      hint: 'set cache.root in dsc.yaml to a folder you may write',
      cause: error,
    })
  }
}

/** Gives the cache a new id, for instance because its disk was copied, and returns it. */
export async function renewCacheId(root: string): Promise<string> {
  const id = crypto.randomUUID()
  await writeIdentity(root, { id })
  return id
}

/** Replaces the identity file. */
export async function writeIdentity(
  root: string,
  identity: { readonly id: string; readonly record?: string },
): Promise<void> {
  const next = `${identityFile(root)}.${crypto.randomUUID()}`
  await writeFile(next, formatIdentity(identity), { flag: 'wx' })
  await rename(next, identityFile(root))
}

/** Creates a complete file in one step. Rejects with EEXIST if it exists. */
async function writeFirst(path: string, text: string): Promise<void> {
  const next = `${path}.${crypto.randomUUID()}`
  await writeFile(next, text, { flag: 'wx' })
  await using _ = atEnd(() => unlink(next))
  await link(next, path)
}

function formatIdentity(identity: { readonly id: string; readonly record?: string }): string {
  return `${JSON.stringify({ layout: LAYOUT_VERSION, ...identity })}\n`
}
