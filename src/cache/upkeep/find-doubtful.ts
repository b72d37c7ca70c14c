import type { CopyPlace } from '../../records/contract/record-store.js'

/** Links to a folder of a file system that counts them: its name, its own `.`, and the `..` of each folder in it. */
const OWN_LINKS = 2

/** What a cleanup has seen of a node at a glance. */
export interface Glance {
  /** Folder of the cache in which copies are published. */
  readonly copiesRoot: string
  /** Names in it, with the number of links to each; a number that means nothing makes a dataset doubtful. */
  readonly links: ReadonlyMap<string, number>
  /** By the record, read after `links`. */
  readonly places: readonly CopyPlace[]
  /** Whether nothing is at a path. */
  readonly isGone: (path: string) => boolean
}

/**
 * Finds the datasets of which a cleanup must look at every copy and folder. Of any other, the record knows one ready
 * copy at most, its files are there, and no folder lies beside it: there is nothing to do, and 100,000 such folders
 * need not be opened.
 */
export function findDoubtful({ copiesRoot, links, places, isGone }: Glance): ReadonlySet<string> {
  const doubtful = new Set<string>()
  const seen = new Set<string>()
  for (const { dataset, path, isPlain } of places) {
    const isFirst = !seen.has(dataset)
    seen.add(dataset)
    const isInside = path.startsWith(copiesRoot) && path.startsWith(`/${dataset}/`, copiesRoot.length)
    const isAlone = links.get(dataset) === OWN_LINKS + 1 && isInside
    if (!isPlain || !isFirst || !isAlone || isGone(path)) doubtful.add(dataset)
  }
  for (const dataset of links.keys()) if (!seen.has(dataset)) doubtful.add(dataset)
  return doubtful
}
