import { createKeyMatcher } from '../../cache/download/match-keys.js'
import type { Dataset } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'

/** A dataset whose objects lie in a bucket. */
export interface ServedDataset {
  readonly dataset: Dataset
  readonly bucket: string
  /** Beginning of its keys: empty or ending in `/`. */
  readonly prefix: string
  /** Whether its definition takes a key, relative to the prefix. */
  readonly takes: (key: string) => boolean
}

/** What clients can ask for. */
export interface Catalog {
  /** Also those without a bucket. */
  readonly datasets: readonly Dataset[]
  /** Those that an S3 client can ask for, longest prefix first. */
  readonly served: readonly ServedDataset[]
  readonly buckets: ReadonlySet<string>
}

/** Sorts datasets by what is asked for. */
export function makeCatalog(datasets: readonly Dataset[]): Catalog {
  const served = datasets
    .flatMap((dataset) => {
      const url = parseSourceUrl(dataset.source)
      return url.scheme === 's3'
        ? [{ dataset, bucket: url.bucket, prefix: url.prefix, takes: takesOf(dataset) }]
        : []
    })
    .toSorted((a, b) => b.prefix.length - a.prefix.length || (a.dataset.name < b.dataset.name ? -1 : 1))
  return { datasets, served, buckets: new Set(served.map(({ bucket }) => bucket)) }
}

/**
 * The dataset that serves a key: the one with the longest prefix of it, so that a dataset declared inside another is
 * answered by its own definition; of several that share the prefix, the first that takes the key. Undefined: nobody
 * declared it.
 */
export function findServed(
  served: readonly ServedDataset[],
  bucket: string,
  key: string,
): ServedDataset | undefined {
  const first = served.find((entry) => entry.bucket === bucket && key.startsWith(entry.prefix))
  if (first === undefined) return undefined
  const { prefix } = first
  const rest = key.slice(prefix.length)
  if (first.takes(rest)) return first
  return (
    served.find((entry) => entry.bucket === bucket && entry.prefix === prefix && entry.takes(rest)) ?? first
  )
}

/** The globs are read when a key is asked for: the catalog is made anew every few seconds. */
function takesOf(dataset: Dataset): ServedDataset['takes'] {
  if (dataset.include.length + dataset.exclude.length === 0) return () => true
  let matcher: ServedDataset['takes'] | undefined
  return (key) => {
    matcher ??= createKeyMatcher(dataset)
    return matcher(key)
  }
}
