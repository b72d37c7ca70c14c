import { setTimeout as sleep } from 'node:timers/promises'
import { ArrivalClient } from '../cache/arrivals/arrival-client.js'
import { filesDirectory } from '../cache/cache-layout.js'
import { isOfDefinition } from '../cache/leases/take-ready-copy.js'
import type { Surroundings } from '../cache/surroundings.js'
import { arrivingSupply } from '../feed/sources/arriving-supply.js'
import type { Listing } from '../manifest/listing.js'
import { Manifest } from '../manifest/manifest.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { Copy } from '../model/copy.js'
import { HeldFolder } from '../platform/held-folder.js'
import { LOOK_MS, pause } from '../platform/poll.js'
import { toText } from '../samples/byte-path.js'
import { explainLeftOut, noSamples } from '../samples/index-samples.js'
import { digestListing, type ListedFiles, listSamples } from '../samples/listed-samples.js'
import type { SampleTable } from '../samples/sample-table.js'
import type { Preparing } from './begin-preparing.js'
import { CopyArrivals } from './copy-arrivals.js'
import type { FeedRequest, LeasedSupply } from './feed-request.js'
import { prefixOf } from './open-dataset-folder.js'

/** How long to wait for an admitted download's stager to answer before reading its manifest instead, in ms. */
const MAX_SILENCE_MS = 2000

/**
 * The samples of a dataset that is being downloaded, fed in the meantime: starts once the listing is admitted, and for
 * tar shards once their contents are known. Undefined if the dataset is here, or if its format shows its samples only
 * when complete.
 */
export async function findArrivingSupply(
  context: Surroundings,
  request: FeedRequest & { readonly target: string },
  preparing: Preparing,
): Promise<LeasedSupply | undefined> {
  const copy = await findAdmitted(preparing)
  const format = request.format ?? preparing.dataset.format
  const coming = copy && readComing(copy, { ...request, format })
  if (!coming) return undefined
  const held = HeldFolder.find(copy.directory)
  if (!held) return undefined // just published
  preparing.keepTrying()
  const { dataset, prepared } = preparing
  const { listed, here, keyOf } = coming
  const arrivals = new CopyArrivals({ copy, keyOf, here, prepared, noteRead: preparing.noteRead })
  const end = () => {
    arrivals.close()
    held.close()
  }
  // Because the folder is held, it is still found after its rename.
  const root = `${filesDirectory(held.path)}/${prefixOf(request.split)}`.replace(/\/$/, '')
  const told = explainLeftOut(listed.leftOut)
  if (told !== undefined) context.report.warn(told)
  const found = await findTable(context, { preparing, copy, request, coming, arrivals, root }).catch(
    (error: unknown) => {
      end()
      throw error
    },
  )
  if (found === undefined) {
    end()
    return undefined // it will not come as it was listed
  }
  context.report.note(`dsc: ${dataset.name} is fed while it is staged`)
  request.onArriving?.(prepared)
  return {
    supply: arrivingSupply({
      ...{ root, table: found, arrivals },
      listing: digestListing(found, copy.version!),
      takes: request.start === 'unproven' ? 'unproven' : 'proven',
    }),
    async release() {
      arrivals.close()
      await preparing.release()
      held.close()
    },
  }
}

/** The table of samples; for plain files, it is known from the listing. */
async function findTable(
  context: Surroundings,
  options: {
    readonly preparing: Preparing
    readonly copy: Copy
    readonly request: FeedRequest
    readonly coming: Coming
    readonly arrivals: CopyArrivals
    readonly root: string
  },
): Promise<SampleTable | undefined> {
  const { coming, root, ...rest } = options
  const { listed, entries } = coming
  if (listed.kind === 'files') return listed.table
  const { shards } = listed
  const pathOf = (file: number) => `${root}/${toText(shards[file]!.path)}`
  const { findShardSamples } = await import('./find-shard-samples.js')
  const found = await findShardSamples(context, { ...rest, shards, entries, pathOf })
  const told = found && explainLeftOut(found.leftOut)
  if (told !== undefined) context.report.warn(told)
  if (found?.table.count === 0) throw noSamples(options.request.target!, shards)
  return found?.table
}

/** The copy being staged, once admitted; undefined if it is ready. Rejects with the reason if it never will be. */
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
    await Promise.race([over, pause(LOOK_MS.progress)])
  }
  await prepared
  return undefined
}

/** Whether the stager of the copy answers. */
async function canAsk({ directory }: Copy): Promise<boolean> {
  const opened = ArrivalClient.open(directory)
  const isOpen = opened.then((client) => {
    client?.close()
    return client !== undefined
  })
  // A stopped process still accepts connections, but says nothing.
  return Promise.race([isOpen, sleep(MAX_SILENCE_MS, false)])
}

interface Coming {
  readonly listed: Exclude<ListedFiles, { readonly kind: 'rows' }>
  /** The manifest's entry for each shard; empty for plain files. */
  readonly entries: readonly ManifestEntry[]
  /** 1 for each of its files that is here. */
  readonly here: Uint8Array
  readonly keyOf: (file: number) => string
}

/** The contents of a download; undefined if the listing does not show them. */
function readComing(copy: Copy, { target, split, only, format }: FeedRequest): Coming | undefined {
  using manifest = Manifest.findPublished(copy.directory)
  if (!manifest) return undefined
  const listing = manifest.readSetting('listing')
  if (listing === undefined || (JSON.parse(listing) as Listing).version !== copy.version) return undefined
  const prefix = prefixOf(split)
  const files: { path: string; size: number }[] = []
  const present = new Set<string>()
  for (const { key, sizeBytes, state } of manifest.entries('all')) {
    if (!key.startsWith(prefix)) continue
    files.push({ path: key.slice(prefix.length), size: sizeBytes })
    if (state === 'present') present.add(key)
  }
  if (split !== undefined && files.length === 0) return undefined // told apart by names, once all are here
  const listed = listSamples(files, { folder: target!, only, format })
  if (listed.kind === 'rows') return undefined
  const keyOf = (file: number) =>
    prefix + (listed.kind === 'files' ? listed.table.fileName(file) : toText(listed.shards[file]!.path))
  const count = listed.kind === 'files' ? listed.table.fileCount : listed.shards.length
  const here = Uint8Array.from({ length: count }, (_, file) => (present.has(keyOf(file)) ? 1 : 0))
  const entries = listed.kind === 'files' ? [] : listed.shards.map((_, file) => manifest.find(keyOf(file))!)
  return { listed, entries, here, keyOf }
}
