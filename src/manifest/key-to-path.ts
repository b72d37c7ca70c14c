/** Why a key cannot become a path. */
export type KeyProblem =
  | 'is empty'
  | 'is absolute'
  | 'has an empty segment'
  | 'ends in "/" but holds bytes'
  | 'has a "." or ".." segment'
  | 'contains NUL'
  | 'contains a control character'
  | 'contains a backslash'
  | 'is not valid Unicode'
  | 'has a segment over 255 bytes'
  | 'is over 1,024 bytes'

/** The path of a key's object in the copy, or why it cannot have one. */
export type KeyPath =
  | { readonly path: string; readonly problem: null }
  | { readonly path: null; readonly problem: KeyProblem }

const MAX_SEGMENT_BYTES = 255 // NAME_MAX of ext4, xfs, btrfs, tmpfs
const MAX_KEY_BYTES = 1024 // S3's own limit; leaves 3,071 bytes of PATH_MAX for the cache root
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/**
 * The path of an object relative to `files/`, or why it has none. The path IS the key: nothing is escaped, so
 * training code opens what the bucket shows, two keys never share a path, and the way back is the identity.
 * Keys that could leave the directory, that depend on the file system or that deceive a terminal have no path.
 */
export function keyToPath(key: string): KeyPath {
  const problem = findKeyProblem(key)
  return problem === undefined ? { path: key, problem: null } : { path: null, problem }
}

/** The key that `keyToPath` turned into `path`. */
export function pathToKey(path: string): string {
  return path
}

function findKeyProblem(key: string): KeyProblem | undefined {
  if (key === '') return 'is empty'
  if (key.includes('\0')) return 'contains NUL'
  if (key.startsWith('/')) return 'is absolute'
  if (!key.isWellFormed()) return 'is not valid Unicode'
  if (CONTROL.test(key)) return 'contains a control character'
  if (key.includes('\\')) return 'contains a backslash'
  if (key.endsWith('/')) return 'ends in "/" but holds bytes'
  if (key.length > MAX_KEY_BYTES / 4 && utf8Bytes(key) > MAX_KEY_BYTES) return 'is over 1,024 bytes'
  for (const segment of key.split('/')) {
    if (segment === '') return 'has an empty segment'
    if (segment === '.' || segment === '..') return 'has a "." or ".." segment'
    if (segment.length > MAX_SEGMENT_BYTES / 4 && utf8Bytes(segment) > MAX_SEGMENT_BYTES)
      return 'has a segment over 255 bytes'
  }
  return undefined
}

function utf8Bytes(text: string): number {
  let bytes = 0
  for (const character of text) {
    const codePoint = character.codePointAt(0)!
    bytes += codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4
  }
  return bytes
}
