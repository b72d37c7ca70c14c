import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { unlessRejected } from '../../failure/unless-code.js'
import type { SampleFolder } from '../../samples/index-samples.js'
import type { SampleLayout } from '../../samples/plan/sample-placement.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { StorageTls } from '../storage/open-socket.js'
import { type StorageAddress, StorageClient } from '../storage/storage-client.js'
import { findMixParts } from './find-mix-parts.js'
import { LocalSource } from './local-source.js'
import { type RangeReader, RangeSource } from './range-source.js'
import { RemoteSource } from './remote-source.js'
import type { SampleSupply } from './sample-supply.js'

/** Source to read when no storage node can deliver a sample. */
export type RemoteFallback =
  | { readonly kind: 'folder'; readonly folder: Pick<SampleFolder, 'root' | 'table'> }
  | { readonly kind: 'ranges'; readonly reader: RangeReader }

/** The storage nodes that hold the samples, and the fallback if they do not answer. */
export interface RemoteOptions {
  /** With layout `striped`, node i of the list holds the samples s with s mod N = i. */
  readonly nodes: readonly StorageAddress[]
  readonly layout: SampleLayout
  readonly fallback: RemoteFallback | undefined
  readonly token: string | undefined
  /** How to trust nodes; without it, connections are not encrypted. */
  readonly tls?: StorageTls | undefined
  /** First folder of the samples' names → how often an epoch visits them. Default: each sample once. */
  readonly mix?: Readonly<Record<string, number>> | undefined
  /** Called when a node stops answering. */
  readonly onNodeLost?: ((message: string) => void) | undefined
}

/** Samples from storage nodes. Nodes that do not answer now are left to the failure ladder, if another one does. */
export async function nodeSupply(options: RemoteOptions): Promise<SampleSupply> {
  const { nodes, layout, fallback, token, tls, mix } = options
  const folder = fallback?.kind === 'folder' ? fallback.folder : undefined
  const table = folder?.table ?? (await fetchTable(options))
  await checkNodes(options, table)
  return {
    table,
    folder,
    mix: mix && findMixParts(table, mix),
    makeSource({ pool, arenaFile }) {
      const last = folder
        ? new LocalSource(folder.root, table, pool)
        : fallback?.kind === 'ranges'
          ? new RangeSource({ table, arenaFd: arenaFile.fd, reader: fallback.reader })
          : undefined
      return new RemoteSource({
        table,
        layout,
        nodes: nodes.map((address) => ({ address })),
        arenaFd: arenaFile.fd,
        token,
        tls,
        fallback: last,
        onNodeLost: options.onNodeLost,
        nowMs: () => performance.now(),
      })
    },
  }
}

async function fetchTable({ nodes, token, tls }: RemoteOptions): Promise<SampleTable> {
  let failure: unknown
  for (const address of nodes) {
    try {
      const client = await StorageClient.connect({ address, token, tls })
      using _ = atEndNow(() => client.close())
      return await client.fetchManifest()
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** Checks that each node that answers holds the same samples and the stripe that matches its place in the list. */
async function checkNodes(options: RemoteOptions, table: SampleTable): Promise<void> {
  const { nodes, layout, token, tls } = options
  for (const [i, address] of nodes.entries()) {
    const client = await unlessRejected(['FEED_GONE'], StorageClient.connect({ address, token, tls, table }))
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
