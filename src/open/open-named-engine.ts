import type { NodeSurroundings } from '../cache/api/node-api.js'
import type { Surroundings } from '../cache/surroundings.js'
import { openOrClose } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import type { FeedEngine } from '../feed/engine/feed-engine.js'
import type { FeedSettings } from '../feed/engine/feed-settings.js'
import { DEFAULT_MEMORY_BYTES } from '../feed/plan/arena-budget.js'
import { parseGroupOrder } from '../feed/plan/group-order.js'
import type { OrderKind } from '../feed/plan/order.js'
import type { StorageAddress } from '../feed/storage/storage-client.js'
import { formatByteSize } from '../model/byte-size.js'
import type { Copy } from '../model/copy.js'
import type { SampleFolder } from '../samples/index-samples.js'
import type { MeasureFiles } from '../samples/list-folder.js'
import type { RowsReading } from '../samples/rows/rows-place.js'
import { beginPreparing, type Preparing } from './begin-preparing.js'
import type { FeedRequest, LeasedSupply } from './feed-request.js'
import { isDirectory, openDatasetFolder, toFolder } from './open-dataset-folder.js'
import { openFallback } from './open-fallback.js'
import { openJoined } from './open-joined.js'
import { readStorageTls } from './storage-tls.js'

/** Lists the samples of a folder, possibly of a copy. */
type Index = (
  folder: string,
  copy?: Copy,
  reading?: RowsReading,
  split?: string,
  isReadLater?: boolean,
) => Promise<SampleFolder>

/** Opens the engine over a local folder, stripes on several nodes, or storage nodes: the only entry point. */
export async function openNamedEngine(
  context: NodeSurroundings,
  request: FeedRequest,
  settings: FeedSettings,
): Promise<FeedEngine> {
  const { openFeedEngine, startReaders } = await import('../feed/engine/open-feed-engine.js')
  const engine = await openOrClose(async (closers) => {
    const readers = startReaders(settings)
    closers.add(() => readers.close())
    const { supply, release } = await findSupply(context, request, {
      reading: planReading(settings.order),
      measure: readers.measure,
    })
    closers.add(release)
    const opened = openFeedEngine(supply, settings, readers)
    opened.onClose(release)
    return opened
  })
  return openOrClose(async (closers) => {
    closers.add(() => engine.close())
    if (settings.memoryBytes === undefined && engine.memoryBytes < DEFAULT_MEMORY_BYTES)
      context.report.warn(
        `dsc: little memory is free for the feed, so it uses ${formatByteSize(engine.memoryBytes)} instead of ${formatByteSize(DEFAULT_MEMORY_BYTES)}; a larger /dev/shm (docker run --shm-size) helps`,
      )
    await engine.ready()
    return engine
  })
}

/** How to read rows for an order: only an order that goes through few groups at a time can read rows in groups. */
function planReading(order: OrderKind | undefined): RowsReading {
  const window = parseGroupOrder(order)
  if (window !== undefined) return { kind: 'groups', window }
  return { kind: order === undefined || order === 'sequential' ? 'either' : 'unpacked' }
}

async function findSupply(
  context: NodeSurroundings,
  request: FeedRequest,
  { reading, measure }: { readonly reading: RowsReading; readonly measure: MeasureFiles },
): Promise<LeasedSupply> {
  const { target, mix, from, split, only, cacheFolder } = request
  const { indexFolder } = await import('./index-folder.js')
  const { format, dialect, onDamage, columns } = request
  const asked = { cacheFolder, only, format, dialect, onDamage, columns, measure }
  const index: Index = (folder, copy, read, named, isReadLater) =>
    indexFolder(context, folder, { ...asked, split: named, reading: read, copy, isReadLater })
  if (from) return findNodes(context, { ...request, from }, index)
  if (mix) {
    if (target !== undefined)
      throw new DscError('USAGE', `either the dataset ${target} or a mix is given, not both`)
    return joinFolders(context, { mix, split }, index)
  }
  if (target === undefined)
    throw new DscError('USAGE', 'a dataset, a mix, or storage nodes to read from are needed', {
      hint: 'dsc feed serve --help',
    })
  const { findStripedSupply } = await import('./find-striped-supply.js')
  const striped = await findStripedSupply(context, { target, split, only, format, dialect, cacheFolder })
  return (
    striped ??
    leaseFolder(context, { ...request, target }, (folder, copy, _, named) =>
      index(folder, copy, reading, named, true),
    )
  )
}

async function leaseFolder(
  context: NodeSurroundings,
  request: FeedRequest & { readonly target: string },
  index: Index,
): Promise<LeasedSupply> {
  const { target, split, start = 'arriving' } = request
  const [{ folderSupply, groupSupply }, { explainFound }] = await Promise.all([
    import('../feed/sources/folder-supply.js'),
    import('../samples/index-samples.js'),
  ])
  const mayArrive = start !== 'staged' && !/^[./]/.test(target) && !isDirectory(target)
  const preparing = mayArrive ? await beginPreparing(context, target, { isReadWhileComing: true }) : undefined
  const arriving = preparing && (await findArriving(context, request, preparing))
  if (arriving) return arriving
  return openOrClose(async (closers) => {
    const {
      folder,
      copy,
      split: named,
      release,
    } = await (preparing ? toFolder(context, preparing, split) : openDatasetFolder(context, target, split))
    closers.add(release)
    const listed = await index(folder, copy, undefined, named)
    context.report.note(explainFound(listed))
    const supplyOf = listed.groups ? groupSupply : folderSupply
    return {
      supply: supplyOf(listed, { listing: await findListing(listed, copy?.version ?? null) }),
      async release() {
        try {
          listed.keepKnown?.()
        } finally {
          await release()
        }
      },
    }
  })
}

/** Identity of samples before all checksums are known; undefined where they always are. */
async function findListing(listed: SampleFolder, version: string | null): Promise<string | undefined> {
  if (version === null && listed.format !== 'files') return undefined
  const [{ digestListing }, { digestContent }] = await Promise.all([
    import('../samples/listed-samples.js'),
    import('../samples/later-checksums.js'),
  ])
  return digestListing(listed.table, version ?? digestContent(listed.root, listed.table))
}

async function findArriving(
  context: Surroundings,
  request: FeedRequest & { readonly target: string },
  preparing: Preparing,
): Promise<LeasedSupply | undefined> {
  return openOrClose(async (closers) => {
    closers.add(() => preparing.release())
    const { findArrivingSupply } = await import('./open-arriving-supply.js')
    return findArrivingSupply(context, request, preparing)
  })
}

async function findNodes(
  context: Surroundings,
  request: FeedRequest & { readonly from: readonly StorageAddress[] },
  index: Index,
): Promise<LeasedSupply> {
  const { from: nodes, layout, token, mix, split } = request
  const { nodeSupply } = await import('../feed/sources/node-supply.js')
  const tls = request.isEncrypted ? await readStorageTls(context) : undefined
  return openOrClose(async (closers) => {
    const fallback =
      request.fallback === undefined
        ? undefined
        : await openFallback(context, request.fallback, { split, index })
    if (fallback?.kind === 'ranges') closers.add(() => fallback.reader.close())
    return {
      supply: await nodeSupply({ nodes, layout, fallback, token, tls, mix, onNodeLost: context.report.note }),
      release: async () => {},
    }
  })
}

async function joinFolders(
  context: NodeSurroundings,
  { mix, split }: { readonly mix: Readonly<Record<string, number>>; readonly split: string | undefined },
  index: Index,
): Promise<LeasedSupply> {
  const [{ folderSupply }, { findMixParts }] = await Promise.all([
    import('../feed/sources/folder-supply.js'),
    import('../feed/sources/find-mix-parts.js'),
  ])
  return openOrClose(async (closers) => {
    const { folder, names, release } = await openJoined(context, Object.keys(mix), { split, index })
    closers.add(release)
    const times = Object.fromEntries([...names].map(([target, name]) => [name, mix[target]!]))
    return { supply: folderSupply(folder, { mix: findMixParts(folder.table, times) }), release }
  })
}
