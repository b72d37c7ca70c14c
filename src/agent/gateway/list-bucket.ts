import type { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { compareKeys } from '../../model/compare-keys.js'
import type { ServedDataset } from './find-dataset.js'
import { findServed } from './find-dataset.js'
import type { GatewayCopies } from './gateway-copies.js'
import type { Pins } from './located.js'
import { type BucketPage, behind, isFolder, type KeysFrom, planListing } from './plan-listing.js'
import { type ListQuery, S3Error } from './s3-request.js'

/**
 * One page of a bucket: the objects of all datasets in it, merged in key order. A dataset that the delimiter folds into
 * a common prefix is not staged for the listing, unless the page starts inside it.
 */
export async function listBucket(
  query: ListQuery & { readonly bucket: string },
  options: {
    readonly copies: GatewayCopies
    readonly inBucket: readonly ServedDataset[]
    readonly pins: Pins
  },
): Promise<BucketPage> {
  const { copies, inBucket, pins } = options
  const { bucket, prefix, delimiter, after } = query
  // Outer datasets around the one that serves the prefix have none of its keys.
  const around = findServed(inBucket, bucket, prefix)?.prefix
  const touched = inBucket.filter((entry) => entry.prefix === around || entry.prefix.startsWith(prefix))
  if (touched.length === 0 && prefix !== '')
    throw new S3Error(
      'AccessDenied',
      `s3://${bucket}/${prefix} is below no dataset that dsc.yaml declares or the record knows`,
    )
  // Only the dataset itself knows which keys follow one of its keys.
  const isBegun = (entry: ServedDataset) =>
    after.startsWith(entry.prefix) && !isFolder(after, prefix, delimiter)
  const isFolded = (entry: ServedDataset) =>
    delimiter !== '' &&
    entry.prefix.startsWith(prefix) &&
    entry.prefix.includes(delimiter, prefix.length) &&
    !isBegun(entry)
  const folded = touched.filter(isFolded)
  const opened = touched.filter((entry) => !isFolded(entry))
  const datasets = opened.map(({ dataset }) => dataset)
  return copies.untilFound(datasets, async () => {
    const located = await Promise.all(opened.map(({ dataset }) => copies.locate(dataset, pins)))
    return lookInto(
      located.map(
        (place) =>
          <Result>(look: (manifest: Manifest) => Result) =>
            copies.look(place, look),
      ),
      (manifests) => {
        const lists = manifests.map((manifest, i) => keysOf(manifest, opened[i]!, inBucket))
        return planListing(query, merge([...lists, ...folded.map(namesOnly)]))
      },
    )
  })
}

type Look = <Result>(look: (manifest: Manifest) => Result) => Result | undefined

/** Opens the manifests one by one and calls `use` with all of them; undefined if one of them is gone. */
function lookInto<Result>(
  looks: readonly Look[],
  use: (manifests: readonly Manifest[]) => Result,
  opened: readonly Manifest[] = [],
): Result | undefined {
  const [first, ...rest] = looks
  if (first === undefined) return use(opened)
  return first((manifest) => lookInto(rest, use, [...opened, manifest]))
}

/** The keys of a dataset under its prefix, except those that a dataset inside it, or beside it, serves. */
function keysOf(
  manifest: Manifest,
  { prefix, dataset, bucket }: ServedDataset,
  inBucket: readonly ServedDataset[],
): KeysFrom {
  const others = inBucket.filter((entry) => entry.dataset !== dataset && entry.prefix.startsWith(prefix))
  const entriesFrom = merge<ManifestEntry>([
    (key) => manifest.entriesFrom(key),
    (key) => manifest.markers.from(key),
  ])
  return function* (from) {
    if (!from.startsWith(prefix) && compareKeys(from, prefix) > 0) return
    let start = from.startsWith(prefix) ? from.slice(prefix.length) : ''
    for (let isEnd = false; !isEnd; ) {
      isEnd = true
      for (const entry of entriesFrom(start)) {
        if (entry.state === 'elsewhere') continue
        const key = prefix + entry.key
        const served = others.length > 0 ? findServed(inBucket, bucket, key) : undefined
        if (served === undefined || served.dataset === dataset) {
          yield { key, sizeBytes: entry.sizeBytes, etag: entry.etag, modifiedAtMs: entry.modifiedAtMs }
          continue
        }
        if (served.prefix === prefix) continue
        // One look-up skips all of an inner dataset, except keys that nothing sorts after.
        const end = behind(served.prefix).slice(prefix.length)
        if (compareKeys(end, start) <= 0) continue
        start = end
        isEnd = false
        break
      }
    }
  }
}

/** A folded dataset shows as its folder, so any key in it will do. */
function namesOnly({ prefix }: ServedDataset): KeysFrom {
  const key = { key: prefix, sizeBytes: 0, etag: null, modifiedAtMs: 0 }
  return (from) => (compareKeys(prefix, from) >= 0 ? [key] : [])
}

/** Merges several ordered lists into one. */
function merge<Keyed extends { readonly key: string }>(
  lists: readonly ((from: string) => Iterable<Keyed>)[],
): (from: string) => Iterable<Keyed> {
  if (lists.length === 1) return lists[0]!
  return function* (from) {
    const heads = lists.map((keysFrom) => {
      const keys = keysFrom(from)[Symbol.iterator]()
      return { keys, next: keys.next() }
    })
    for (;;) {
      let least: (typeof heads)[number] | undefined
      for (const head of heads) {
        if (head.next.done) continue
        if (!least || compareKeys(head.next.value.key, (least.next.value as Keyed).key) < 0) least = head
      }
      if (!least) return
      yield least.next.value as Keyed
      least.next = least.keys.next()
    }
  }
}
