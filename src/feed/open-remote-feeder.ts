import { DscError } from '../failure/dsc-error.js'
import { type FeedSettings, type OpenedFeeder, openFeeder } from './open-feeder.js'
import type { SampleLayout } from './plan/sample-placement.js'
import { findMixParts } from './samples/find-mix-parts.js'
import type { SampleFolder } from './samples/index-samples.js'
import type { SampleTable } from './samples/sample-table.js'
import { createLocalSource } from './sources/local-source.js'
import { createRangeSource, type RangeReader } from './sources/range-source.js'
import { createRemoteSource } from './sources/remote-source.js'
import type { StorageTls } from './storage/open-socket.js'
import { connectStorage, type StorageAddress } from './storage/storage-client.js'

/** What is read when no storage node can give a sample. */
export type RemoteFallback =
  | { readonly kind: 'folder'; readonly folder: Pick<SampleFolder, 'root' | 'table'> }
  | { readonly kind: 'ranges'; readonly reader: RangeReader }

export interface RemoteOptions {
  /** With layout `striped`, node i of the list holds the samples s with s mod N = i. */
  readonly nodes: readonly StorageAddress[]
  readonly layout: SampleLayout
  readonly fallback: RemoteFallback | undefined
  readonly token: string | undefined
  /** How nodes are believed; absent: connections are not encrypted. */
  readonly tls?: StorageTls | undefined
  /** First folder of the samples' names → how often an epoch visits them. Default: each sample once. */
  readonly mix?: Readonly<Record<string, number>> | undefined
}

/** Opens a feed over storage nodes. Nodes that do not answer now are left to the failure ladder, if one does. */
export async function openRemoteFeeder(
  options: RemoteOptions,
  settings: FeedSettings,
): Promise<OpenedFeeder> {
  const { nodes, layout, fallback, token, tls } = options
  const folder = fallback?.kind === 'folder' ? fallback.folder : undefined
  const table = folder?.table ?? (await fetchTable(options))
  await checkNodes(options, table)
  const readerFolder = folder && { root: folder.root, tableBytes: folder.table.bytes }
  const mix = options.mix && findMixParts(table, options.mix)
  return openFeeder(table, { ...settings, mix }, readerFolder, ({ pool, arenaFile }) =>
    createRemoteSource({
      table,
      layout,
      nodes: nodes.map((address) => ({ address })),
      arenaFd: arenaFile.fd,
      token,
      tls,
      fallback: folder
        ? createLocalSource(folder.root, table, pool)
        : fallback?.kind === 'ranges'
          ? createRangeSource({ table, arenaFd: arenaFile.fd, reader: fallback.reader })
          : undefined,
      nowMs: () => performance.now(),
    }),
  )
}

async function fetchTable({ nodes, token, tls }: RemoteOptions): Promise<SampleTable> {
  let failure: unknown
  for (const address of nodes) {
    try {
      const client = await connectStorage({ address, token, tls })
      try {
        return await client.fetchManifest()
      } finally {
        client.close()
      }
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** A node that answers must hold the same samples, and the stripe that its place in the list says. */
async function checkNodes(options: RemoteOptions, table: SampleTable): Promise<void> {
  const { nodes, layout, token, tls } = options
  for (const [i, address] of nodes.entries()) {
    const client = await connectStorage({ address, token, tls, table }).catch((error: unknown) => {
      if (error instanceof DscError && error.code === 'FEED_GONE') return undefined
      throw error
    })
    const stripe = client?.stripe
    client?.close()
    if (!client) continue
    const isExpected =
      !stripe || (layout === 'striped' && stripe.index === i && stripe.count === nodes.length)
    if (!isExpected)
      throw new DscError(
        'FEED_STATE_MISMATCH',
        `${address.host}:${address.port} holds stripe ${stripe.index} of ${stripe.count}, but is node ${i} of ${nodes.length} with layout ${layout}`,
        { hint: 'list the nodes in the order of their stripes, with --layout striped' },
      )
  }
}
