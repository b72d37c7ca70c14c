import { DscError } from '../failure/dsc-error.js'
import type { FeedSettings, OpenedFeeder } from '../feed/open-feeder.js'
import type { SampleLayout } from '../feed/plan/sample-placement.js'
import type { SampleFolder } from '../feed/samples/index-samples.js'
import type { StorageAddress } from '../feed/storage/storage-client.js'
import { formatCount } from '../model/format-count.js'
import { openDatasetFolder } from './open-dataset-folder.js'
import { openFallback } from './open-fallback.js'
import { openJoined } from './open-joined.js'
import { readStorageTls } from './storage-tls.js'
import type { Surroundings } from './surroundings.js'

/** Where the samples of a feed come from: `target` or `mix`, or, whatever `target` is, `from`, also with a `mix`. */
export interface FeedRequest {
  /** A directory, the name of a dataset, or the URL of its source. */
  readonly target: string | undefined
  /** Directories or datasets (with `from`: first folders of the samples' names) → visits of each sample in an epoch. */
  readonly mix: Readonly<Record<string, number>> | undefined
  /** Storage nodes; with layout `striped` in the order of their stripes. */
  readonly from: readonly StorageAddress[] | undefined
  readonly layout: SampleLayout
  /** A directory, or a dataset whose source is read, when no storage node can give a sample. */
  readonly fallback: string | undefined
  /** Folder of each dataset that holds its samples. */
  readonly split: string | undefined
  /** Extensions of the files that are samples, without dots; undefined: all files. */
  readonly extensions: readonly string[] | undefined
  /** Whether storage nodes must show a certificate that `agent.tls.caFile` vouches for. */
  readonly isEncrypted: boolean
  /** What storage nodes are shown. */
  readonly token: string | undefined
  /** Where tables of samples are kept between runs. */
  readonly cacheFolder: string
}

/** Opens the feed over a folder of this machine, over stripes on several, or over storage nodes: the one way to it. */
export async function openNamedFeeder(
  context: Surroundings,
  request: FeedRequest,
  settings: FeedSettings,
): Promise<OpenedFeeder> {
  const { target, mix, from, split, extensions, cacheFolder } = request
  const { indexSamples } = await import('../feed/samples/index-samples.js')
  const index = async (folder: string) => {
    const listed = await indexSamples(folder, {
      cacheFolder,
      extensions,
      onProgress: (done, total) =>
        context.report.progress(`listing samples: ${done} of ${formatCount(total, 'file')}`),
    })
    context.report.progress(undefined)
    return listed
  }
  if (from) return openFeederOverNodes(context, { ...request, from }, index, settings)
  if (mix) {
    if (target !== undefined)
      throw new DscError('USAGE', `either the dataset ${target} or a mix is given, not both`)
    return openMixedFeeder(context, mix, split, index, settings)
  }
  if (target === undefined)
    throw new DscError('USAGE', 'a dataset, a mix, or storage nodes to read from are needed', {
      hint: 'dsc feed serve --help',
    })
  const { openStripedFeed } = await import('./open-striped-feed.js')
  const striped = await openStripedFeed(context, target, { split, extensions }, cacheFolder, settings)
  if (striped) return striped
  const { openLocalFeeder } = await import('../feed/open-feeder.js')
  const dataset = await openDatasetFolder(context, target, split)
  try {
    const opened = openLocalFeeder(await index(dataset.folder), settings)
    return { ...opened, close: () => opened.close().finally(dataset.release) }
  } catch (error) {
    await dataset.release()
    throw error
  }
}

async function openFeederOverNodes(
  context: Surroundings,
  request: FeedRequest & { readonly from: readonly StorageAddress[] },
  index: (folder: string) => Promise<SampleFolder>,
  settings: FeedSettings,
): Promise<OpenedFeeder> {
  const { from: nodes, layout, token, mix } = request
  const { openRemoteFeeder } = await import('../feed/open-remote-feeder.js')
  const tls = request.isEncrypted ? await readStorageTls(context) : undefined
  const fallback =
    request.fallback === undefined
      ? undefined
      : await openFallback(context, request.fallback, request.split, index)
  try {
    return await openRemoteFeeder({ nodes, layout, fallback, token, tls, mix }, settings)
  } catch (error) {
    if (fallback?.kind === 'ranges') await fallback.reader.close()
    throw error
  }
}

async function openMixedFeeder(
  context: Surroundings,
  mix: Readonly<Record<string, number>>,
  split: string | undefined,
  index: (folder: string) => Promise<SampleFolder>,
  settings: FeedSettings,
): Promise<OpenedFeeder> {
  const [{ openLocalFeeder }, { findMixParts }] = await Promise.all([
    import('../feed/open-feeder.js'),
    import('../feed/samples/find-mix-parts.js'),
  ])
  const { folder, names, release } = await openJoined(context, Object.keys(mix), split, index)
  try {
    const times = Object.fromEntries([...names].map(([target, name]) => [name, mix[target]!]))
    const opened = openLocalFeeder(folder, { ...settings, mix: findMixParts(folder.table, times) })
    return { ...opened, close: () => opened.close().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}
