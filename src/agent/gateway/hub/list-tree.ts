import { createHash } from 'node:crypto'
import type { Manifest } from '../../../manifest/manifest.js'
import type { ManifestEntry } from '../../../manifest/manifest-entry.js'

const PAGE_FILES = 1000
/** The character after `/`: `data0` sorts after all keys below `data/`. */
const AFTER_SLASH = '0'

/** A file or folder in a hub's listing. */
type TreeEntry = Readonly<Record<string, unknown>>

/** The part of a copy's files that a request asks for. */
interface TreeQuestion {
  /** The repository folder that the copy holds: empty, or ends in `/`. */
  readonly copyFolder: string
  /** The folder to list, from the repository's root. */
  readonly folder: string
  readonly isRecursive: boolean
  /** Path of the last file on the previous page. */
  readonly after: string | undefined
}

/**
 * One page of a copy's files and folders, as a hub lists them; `next` is the cursor of the next page. Undefined: there
 * is no such folder.
 */
export function listTree(
  manifest: Manifest,
  question: TreeQuestion,
): { readonly entries: readonly TreeEntry[]; readonly next: string | undefined } | undefined {
  const { copyFolder, folder, isRecursive, after } = question
  const isAbove = copyFolder.startsWith(folder)
  if (!isAbove && !folder.startsWith(copyFolder)) return undefined
  const prefix = isAbove ? '' : folder.slice(copyFolder.length)
  const entries: TreeEntry[] = []
  const told = new Set(after === undefined ? [] : foldersOf(after, folder))
  let files = 0
  let last = after
  let start = after === undefined ? prefix : after.slice(copyFolder.length)
  for (let isEnd = false; !isEnd; ) {
    isEnd = true
    for (const entry of manifest.entriesFrom(start)) {
      if (!entry.key.startsWith(prefix)) break
      const path = copyFolder + entry.key
      if (path === after || entry.state === 'elsewhere') continue
      if (files === PAGE_FILES) return { entries, next: last }
      const folders = foldersOf(path, folder)
      for (const name of isRecursive ? folders : folders.slice(0, 1)) {
        if (told.has(name)) continue
        told.add(name)
        entries.push({ type: 'directory', path: name, oid: gitName(Buffer.from(name)), size: 0 })
      }
      if (!isRecursive && folders[0] !== undefined) {
        if (!folders[0].startsWith(copyFolder)) return { entries, next: undefined } // the whole copy is below it
        start = folders[0].slice(copyFolder.length) + AFTER_SLASH
        isEnd = false
        break
      }
      entries.push(describeFile(path, entry))
      last = path
      files += 1
    }
  }
  return entries.length === 0 && folder !== '' && after === undefined
    ? undefined
    : { entries, next: undefined }
}

/** The folders between `folder` and a file below it, outermost first. */
function foldersOf(path: string, folder: string): readonly string[] {
  const words = path.slice(folder.length).split('/').slice(0, -1)
  return words.map((_, depth) => folder + words.slice(0, depth + 1).join('/'))
}

/** A file in a hub's listing. An LFS file, which the hub keeps outside git, has the SHA-256 of its content. */
export function describeFile(
  path: string,
  { sizeBytes, etag, checksum }: Pick<ManifestEntry, 'sizeBytes' | 'etag' | 'checksum'>,
): TreeEntry {
  const entry = { type: 'file', path, size: sizeBytes }
  if (checksum?.algorithm !== 'sha256') return { ...entry, oid: etag }
  const oid = Buffer.from(checksum.value, 'base64').toString('hex')
  // The small pointer file that git has in its place: github.com/git-lfs/git-lfs/blob/main/docs/spec.md.
  const pointer = Buffer.from(
    `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${sizeBytes}\n`,
  )
  return { ...entry, oid: gitName(pointer), lfs: { oid, size: sizeBytes, pointerSize: pointer.length } }
}

function gitName(body: Buffer): string {
  return createHash('sha1').update(`blob ${body.length}\0`).update(body).digest('hex')
}
