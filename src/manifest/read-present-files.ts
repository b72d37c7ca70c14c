import type { Listing } from './listing.js'
import { isUnusable, openPublishedFile } from './manifest-file.js'

/** Number of objects to read at once: their names become one text. */
const PAGE_OBJECTS = 16_384

/** SQLite joins rows in the order of the inner query; to have it promised (`ORDER BY` inside) takes as long again. */
const PAGE = `SELECT group_concat(key, char(0)) AS keys, group_concat(size_bytes) AS sizes, max(key) AS last,
    min(state) = 1 AND max(state) = 1 AND sum(instr(key, char(0))) = 0 AS isPresent
  FROM (SELECT key, size_bytes, state FROM object WHERE key > ? ORDER BY key LIMIT ${PAGE_OBJECTS})`

/** The row of `PAGE`; `keys` is null without objects after the given key. */
interface Page {
  readonly keys: string | null
  readonly sizes: string
  readonly last: string
  readonly isPresent: 0 | 1
}

/** A key that may be no path, or one for few file systems: see `keyToPath`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const DOUBTFUL = /(?:^|[\0/])\.{0,2}(?:[\0/]|$)|[\u0001-\u001f\u007f-\u009f\\]/

/** The files of a whole copy, in the byte order of their paths. */
export interface PresentFiles {
  /** Paths in pieces, in each separated by NUL. */
  readonly texts: readonly string[]
  readonly sizes: Float64Array
}

/**
 * Reads the files of a published copy of `version`, without an object for each. Undefined if some are not here, if a key
 * may be no path, or if the manifest is another one.
 */
export function readPresentFiles(copyDirectory: string, version: string): PresentFiles | undefined {
  try {
    const db = openPublishedFile(copyDirectory)
    try {
      const setting = db.prepare<[], string>("SELECT value FROM setting WHERE name = 'listing'").pluck().get()
      if (setting === undefined || (JSON.parse(setting) as Listing).version !== version) return undefined
      const texts: string[] = []
      const sizes: number[] = []
      const page = db.prepare<[string], Page>(PAGE)
      for (let last = ''; ; ) {
        const found = page.get(last)
        if (!found || found.keys === null) return { texts, sizes: Float64Array.from(sizes) }
        if (found.isPresent === 0 || DOUBTFUL.test(found.keys)) return undefined
        texts.push(found.keys)
        for (const size of found.sizes.split(',')) sizes.push(Number(size))
        last = found.last
      }
    } finally {
      db.close()
    }
  } catch (error) {
    if (isUnusable(error) || error instanceof SyntaxError) return undefined
    throw error
  }
}
