import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Copy } from '../model/copy.js'
import { letEverybodyIn, letIn } from '../platform/reader-access.js'
import { UserDirectory } from '../platform/user-directory.js'
import type { Cache } from './cache.js'
import { trashDirectory } from './cache-layout.js'
import { findReadersOf } from './find-readers.js'
import { findHeld, namesBelow } from './held-cache.js'
import { readHeldManifest } from './held-manifest.js'
import { listKept } from './kept-copies.js'

const FOR_OTHERS = 0o007
const FOR_GROUP_AND_OTHERS = 0o055

/**
 * Lets only the readers of a dataset into the folder of a copy, before a byte is in it: what lies below keeps the
 * modes that it has. A reader that this machine does not know has no files of its own here, and is left out.
 */
export async function guardFolder(folder: string, readers: readonly string[]): Promise<void> {
  const directory = new UserDirectory()
  const find = async (kind: string, idOf: (name: string) => Promise<number | undefined>) => {
    const names = readers.flatMap((reader) => (reader.startsWith(kind) ? [reader.slice(kind.length)] : []))
    return (await Promise.all(names.map(idOf))).filter((id) => id !== undefined)
  }
  letIn(folder, {
    users: await find('user:', (name) => directory.idOfUser(name)),
    groups: await find('group:', (name) => directory.idOfGroup(name)),
  })
}

/**
 * Gives the copies of this node, and the evicted ones in its trash, to those who may read them as dsc.yaml says now.
 * Notes what fails, and goes on.
 */
export async function guardCopies(cache: Cache, note: (sentence: string) => void): Promise<void> {
  const tell = (name: string) => (error: unknown) =>
    note(`readers of ${name}: ${error instanceof Error ? error.message : String(error)}`)
  for (const copy of await cache.record.listCopies({ node: cache.node }, cache.nowMs()))
    await guardCopy(cache, copy).catch(tell(copy.dataset))
  for (const { name } of listKept(cache.root)) await guardKept(cache, name).catch(tell(name))
}

/** An undo refuses what has no manifest, and a cleanup deletes it. */
async function guardKept(cache: Cache, name: string): Promise<void> {
  const directory = join(trashDirectory(cache.root), name)
  const source = readHeldManifest(cache.root, directory)?.dataset
  if (source) await guardCopy(cache, { dataset: source.name, source, directory })
}

/** Gives the folder of a copy to those who may read the dataset as dsc.yaml says now. */
export async function guardCopy(
  cache: Pick<Cache, 'root' | 'declared'>,
  copy: Pick<Copy, 'dataset' | 'source' | 'directory'>,
): Promise<void> {
  const readers = findReadersOf(cache, copy)
  const isDeclared = cache.declared?.some(({ name }) => name === copy.dataset)
  if (readers === undefined && !isDeclared) return
  using held = findHeld(cache.root, namesBelow(cache.root, copy.directory))
  if (held === undefined) return
  if (readers) await guardFolder(held.path, readers)
  else if ((statSync(held.path).mode & FOR_OTHERS) === 0)
    letEverybodyIn(held.path, 0o700 | (statSync(cache.root).mode & FOR_GROUP_AND_OTHERS))
}
