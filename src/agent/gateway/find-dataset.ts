import { createKeyMatcher } from '../../cache/download/match-keys.js'
import type { Dataset } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'

/** A dataset whose objects are in a bucket. */
export interface ServedDataset {
  readonly dataset: Dataset
  readonly bucket: string
  /** Start of its keys: empty, or ends in `/`. */
  readonly prefix: string
  /** Whether its definition includes a key, relative to the prefix. */
  readonly takes: (key: string) => boolean
}

/** The datasets that clients can ask for. */
export interface Catalog {
  /** All datasets, including those without a bucket. */
  readonly datasets: readonly Dataset[]
  /** The datasets that an S3 client can ask for, longest prefix first. */
  readonly served: readonly ServedDataset[]
  readonly buckets: ReadonlySet<string>
}

/** Sorts datasets by how clients ask for them. */
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
 * The dataset that serves a key: the one with the longest matching prefix, so that a dataset declared inside another is
 * answered by its own definition. If several share the prefix, the first that includes the key. Undefined: none
 * declares it.
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

/** Compiles the globs at the first key: the catalog is rebuilt every few seconds. */
function takesOf(dataset: Dataset): ServedDataset['takes'] {
  if (dataset.include.length + dataset.exclude.length === 0) return () => true
  let matcher: ServedDataset['takes'] | undefined
  return (key) => {
    matcher ??= createKeyMatcher(dataset)
    return matcher(key)
  }
}
