import type { CopyPlace } from '../../records/contract/record-store.js'

/**
 * Links to an empty folder on a file system that counts them: its name and its own `.`; each folder inside adds its
 * `..`.
 */
const OWN_LINKS = 2

/** The quick facts about a node that a cleanup starts from. */
export interface Glance {
  /** The cache's folder of published copies. */
  readonly copiesRoot: string
  /** Names in it, with the number of links to each; a meaningless number makes a dataset doubtful. */
  readonly links: ReadonlyMap<string, number>
  /** Copies in the record, read after `links`. */
  readonly places: readonly CopyPlace[]
  /** Whether there is nothing at a path. */
  readonly isGone: (path: string) => boolean
}

/**
 * Finds the datasets whose copies and folders a cleanup must check one by one. Of any other dataset, the record knows
 * at most one ready copy, its files are there, and no folder lies beside it. It needs nothing done, so 100,000 such
 * folders need not be opened.
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
