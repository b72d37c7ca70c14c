import { compareKeys } from '../../model/compare-keys.js'
import type { ManifestObject } from '../../model/manifest.js'
import type { ListQuery } from './s3-request.js'

/** An object in a listing, with its full key in the bucket. */
type ListedKey = Pick<ManifestObject, 'key' | 'sizeBytes' | 'etag' | 'modifiedAtMs'>

/** Objects of a bucket in byte order of their UTF-8 keys, starting at the first key that is not below `key`. */
export type KeysFrom = (key: string) => Iterable<ListedKey>

/** One page of a listing. */
export interface BucketPage {
  readonly objects: readonly ListedKey[]
  /** Starts of keys up to the first delimiter after the prefix, each once. */
  readonly commonPrefixes: readonly string[]
  /** Where the next page starts; undefined: this is the last page. */
  readonly next: string | undefined
}

/**
 * Makes one page of a bucket's listing as S3's ListObjectsV2 does: keys with `prefix`, after `after`, at most `maxKeys`
 * objects and common prefixes together. Skips each whole folder with one look-up.
 */
export function planListing(query: ListQuery, keysFrom: KeysFrom): BucketPage {
  const { prefix, delimiter, after, maxKeys } = query
  const objects: ListedKey[] = []
  const commonPrefixes: string[] = []
  if (maxKeys === 0) return { objects, commonPrefixes, next: undefined }
  let last: string | undefined
  const isFull = () => objects.length + commonPrefixes.length === maxKeys
  // After a page that ended with a folder, skip everything in that folder.
  let passed = isFolder(after, prefix, delimiter) ? after : undefined
  let from = compareKeys(after, prefix) < 0 ? prefix : passed === undefined ? after : behind(passed)
  for (;;) {
    let folder: string | undefined
    for (const object of keysFrom(from)) {
      if (!object.key.startsWith(prefix)) return { objects, commonPrefixes, next: undefined }
      if (passed !== undefined && object.key.startsWith(passed)) continue
      if (after !== '' && compareKeys(object.key, after) <= 0) continue
      if (isFull()) return { objects, commonPrefixes, next: last }
      folder = folderOf(object.key, prefix, delimiter)
      if (folder !== undefined) break
      objects.push(object)
      last = object.key
    }
    if (folder === undefined) return { objects, commonPrefixes, next: undefined }
    commonPrefixes.push(folder)
    last = folder
    passed = folder
    from = behind(folder)
  }
}

function folderOf(key: string, prefix: string, delimiter: string): string | undefined {
  if (delimiter === '') return undefined
  const end = key.indexOf(delimiter, prefix.length)
  return end === -1 ? undefined : key.slice(0, end + delimiter.length)
}

/** Whether a listing continues after a folder, which is how its next page starts. */
export function isFolder(after: string, prefix: string, delimiter: string): boolean {
  return after.startsWith(prefix) && folderOf(after, prefix, delimiter) === after
}

/** A key after every key in `folder`, except those that continue with U+10FFFF, which nothing sorts after. */
export function behind(folder: string): string {
  return `${folder}\u{10FFFF}`
}
