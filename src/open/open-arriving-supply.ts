import { setTimeout as sleep } from 'node:timers/promises'
import { ArrivalClient } from '../cache/arrivals/arrival-client.js'
import { filesDirectory } from '../cache/cache-layout.js'
import { isOfDefinition } from '../cache/leases/take-ready-copy.js'
import type { Listing } from '../cache/manifest/listing.js'
import { Manifest } from '../cache/manifest/manifest.js'
import type { Surroundings } from '../cache/surroundings.js'
import { explainLeftOut } from '../feed/samples/index-samples.js'
import { digestListing, type ListedSamples, listSamples } from '../feed/samples/listed-samples.js'
import { arrivingSupply } from '../feed/sources/arriving-supply.js'
import type { Copy } from '../model/copy.js'
import { HeldFolder } from '../platform/held-folder.js'
import type { Preparing } from './begin-preparing.js'
import { CopyArrivals } from './copy-arrivals.js'
import type { FeedRequest, LeasedSupply } from './feed-request.js'
import { noSplit } from './open-dataset-folder.js'

/** How often the record is asked whether a staging is admitted, ms. */
const LOOK_INTERVAL_MS = 50

/** Where nobody answers for so long though the staging is admitted, its manifest is looked at instead, ms. */
const MAX_SILENCE_MS = 2000

/**
 * The samples of a dataset that is on its way here, fed while it comes: it begins once the listing is admitted.
 * Undefined where the dataset is here, or where it holds tar shards, of which nobody knows the samples before they
 * are here.
 */
export async function findArrivingSupply(
  context: Surroundings,
  request: FeedRequest & { readonly target: string },
  preparing: Preparing,
): Promise<LeasedSupply | undefined> {
  const copy = await findAdmitted(preparing)
  const coming = copy && readComing(copy, request)
  if (!coming) return undefined
  const { listed, here, version } = coming
  const { table, leftOut } = listed
  const held = HeldFolder.find(copy.directory)
  if (!held) return undefined // published this moment
  preparing.keepTrying()
  const { dataset, prepared } = preparing
  const prefix = prefixOf(request.split)
  const keyOf = (file: number) => prefix + table.fileName(file)
  const arrivals = new CopyArrivals({ copy, keyOf, here, prepared })
  context.report.note(`dsc: ${dataset.name} is fed while it is staged`)
  const told = explainLeftOut(leftOut)
  if (told !== undefined) context.report.note(told)
  // Held, the folder is found after its renaming, too.
  const root = `${filesDirectory(held.path)}/${prefix}`.replace(/\/$/, '')
  return {
    supply: arrivingSupply({ root, table, arrivals, listing: digestListing(table, version) }),
    async release() {
      arrivals.close()
      await preparing.release()
      held.close()
    },
  }
}

/** The copy that is being staged, once it is admitted; undefined when it is ready. Rejects with why it will not be. */
async function findAdmitted({ cache, dataset, prepared }: Preparing): Promise<Copy | undefined> {
  let isOver = false
  const over = prepared.then(
    () => undefined,
    () => undefined,
  )
  void over.then(() => {
    isOver = true
  })
  const beganMs = performance.now()
  while (!isOver) {
    const wanted = { dataset: dataset.name, node: cache.node, states: ['staging'] as const }
    const copies = await cache.record.listCopies(wanted, cache.nowMs())
    const copy = copies.find((each) => !each.stripe && isOfDefinition(each, dataset))
    if (copy && ((await canAsk(copy)) || performance.now() - beganMs > MAX_SILENCE_MS)) return copy
    await Promise.race([over, sleep(LOOK_INTERVAL_MS)])
  }
  await prepared
  return undefined
}

/** Whether somebody who stages the copy answers. */
async function canAsk({ directory }: Copy): Promise<boolean> {
  const opened = ArrivalClient.open(directory)
  const isOpen = opened.then((client) => {
    client?.close()
    return client !== undefined
  })
  // One that was stopped takes connections and says nothing.
  return Promise.race([isOpen, sleep(MAX_SILENCE_MS, false)])
}

interface Coming {
  readonly listed: ListedSamples
  /** 1 for each file of the table that is here. */
  readonly here: Uint8Array
  readonly version: string
}

/** What is on its way; undefined where that cannot be told from the listing. */
function readComing(copy: Copy, { target, split, extensions, folderKind }: FeedRequest): Coming | undefined {
  const manifest = Manifest.findPublished(copy.directory)
  if (!manifest) return undefined
  try {
    const listing = manifest.readSetting('listing')
    if (listing === undefined || (JSON.parse(listing) as Listing).version !== copy.version) return undefined
    const prefix = prefixOf(split)
    const files: { path: string; size: number }[] = []
    const present = new Set<string>()
    for (const { key, sizeBytes, state } of manifest.entries('all')) {
      if (!key.startsWith(prefix)) continue
      const path = key.slice(prefix.length)
      files.push({ path, size: sizeBytes })
      if (state === 'present') present.add(path)
    }
    if (split !== undefined && files.length === 0) throw noSplit(target!, split)
    const listed = listSamples(files, { folder: target!, extensions, folderKind })
    if (!listed) return undefined
    const { table } = listed
    const here = Uint8Array.from({ length: table.fileCount }, (_, file) =>
      present.has(table.fileName(file)) ? 1 : 0,
    )
    return { listed, here, version: copy.version! }
  } finally {
    manifest.close()
  }
}

/** How keys in the folder of the split begin. */
function prefixOf(split: string | undefined): string {
  return split === undefined ? '' : `${split.replace(/^\.\//, '').replace(/\/+$/, '')}/`
}
