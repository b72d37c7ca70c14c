import { setTimeout as sleep } from 'node:timers/promises'
import { isDscError } from '../../../failure/dsc-error.js'
import type { Dataset } from '../../../model/dataset.js'
import { formatTransferTask } from '../../../model/lease.js'
import { isAgentAlive } from '../../../model/node.js'
import type { RecordStore } from '../../../records/record-store.js'
import { throwIfStopped } from '../../retry.js'
import type { Fetcher, ListedObject, Source, StagingPlan, StagingSource } from '../../source.js'
import { SourceFailure } from '../../source-failure.js'
import { keepTransferLeases } from '../../transfer-lease.js'
import { listPeerManifest } from './fetch-manifest.js'
import { findListers, findPeers, type PeerCopy } from './find-peers.js'
import type { PeerAccess } from './peer-connection.js'
import { openPeerFetcher, type Provider } from './peer-fetcher.js'

export interface PeerSourceOptions {
  readonly dataset: Dataset
  readonly plan: StagingPlan
  readonly record: RecordStore
  /** This node. */
  readonly node: string
  readonly access: PeerAccess
  /** A folder of this node for the manifests of peers. */
  readonly scratch: string
  /** Opens the source that the dataset names; only called when a peer cannot help. */
  readonly openOrigin: () => Promise<Source>
}

/** How long those who stage side by side are waited for to be found in the record, ms. */
const MEET_MS = 5000

/**
 * A dataset by way of other nodes: listed from the manifest of a peer's ready copy, unless the source may have
 * changed, and read from peers under `transfer` leases, each part from another peer or the store when one fails.
 */
export async function openPeerSource(options: PeerSourceOptions): Promise<StagingSource> {
  const { dataset, plan, record, node, access } = options
  const peers = await findPeers(record, node, dataset)
  const shares = peers.length > 0 ? [] : await findShares(record, node, plan.sharedWith)
  const leases = keepTransferLeases(record, formatTransferTask(node))
  const received = { store: 0, peers: {} as Record<string, number> }
  const problems = new Map<string, string>()
  let origin: Promise<Source> | undefined
  const openOrigin = async (): Promise<Source> => {
    origin ??= options.openOrigin()
    try {
      return await origin
    } catch (error) {
      throw explain(error, problems)
    }
  }
  return {
    url: dataset.source,
    describeOrigins: () => received,
    async *list(listOptions) {
      const { signal } = listOptions
      if (!plan.isRefresh) {
        const { version } = plan
        const listers = version === undefined ? peers : await findListers(record, node, dataset, version)
        for (const peer of listers) {
          if (!(await leases.take(peer.copy.copyId))) continue
          const listed = listPeerManifest({
            ...{ url: peer.url, copyId: peer.copy.copyId, access, scratch: options.scratch, signal },
          })
          const first = await firstPage(listed, peer, problems, signal)
          if (first === undefined) continue
          yield first
          yield* listed
          return
        }
      }
      try {
        yield* (await openOrigin()).list(listOptions)
      } catch (error) {
        throw explain(error, problems)
      }
    },
    openFetcher: async ({ connections }): Promise<Fetcher> => {
      const ready: Provider[] = peers.map((peer) => ({
        node: peer.node,
        url: peer.url,
        take: () => leases.take(peer.copy.copyId),
      }))
      return openPeerFetcher({
        ready,
        shares,
        node,
        access,
        connections,
        dataset,
        received,
        explain: (error) => explain(error, problems),
        noteProblem: (who, problem) => problems.set(who, problem),
        openOriginFetcher: async () => (await openOrigin()).openFetcher({ connections }),
      })
    },
    async close() {
      await leases.release()
      await (await origin?.catch(() => undefined))?.close()
    },
  }
}

/** The agents of the nodes that stage side by side with this one, which stands among them without a URL. */
async function findShares(
  record: RecordStore,
  node: string,
  sharedWith: readonly string[],
): Promise<readonly Provider[]> {
  if (sharedWith.length < 2 || !sharedWith.includes(node)) return []
  const endMs = performance.now() + MEET_MS
  for (;;) {
    const nodes = (await record.listNodes()).filter((entry) => isAgentAlive(entry, record.nowMs()))
    const urls = new Map(nodes.map((entry) => [entry.node, entry.agent!.url]))
    const shares = sharedWith.flatMap((name) => {
      const url = urls.get(name)
      return name === node || url !== undefined
        ? [{ node: name, url: url ?? '', take: async () => true }]
        : []
    })
    if (shares.length === sharedWith.length || performance.now() > endMs) return shares
    await sleep(200)
  }
}

async function firstPage(
  listed: AsyncGenerator<readonly ListedObject[]>,
  peer: PeerCopy,
  problems: Map<string, string>,
  signal: AbortSignal | undefined,
): Promise<readonly ListedObject[] | undefined> {
  try {
    const { value, done } = await listed.next()
    return done ? undefined : value
  } catch (error) {
    throwIfStopped(signal)
    problems.set(peer.node, `manifest: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

/** Adds what peers failed with to the failure of the store, which was the last resort. */
function explain(error: unknown, problems: ReadonlyMap<string, string>): unknown {
  if (problems.size === 0 || !isDscError(error)) return error
  const told = [...problems].map(([node, problem]) => `node ${node} ${problem}`).join('; ')
  if (error.message.includes('; before that')) return error
  return new SourceFailure(error.code, `${error.message}; before that ${told}`, {
    isTransient: error instanceof SourceFailure && error.isTransient,
    hint: error.hint,
    cause: error,
    retryAfterMs: error instanceof SourceFailure ? error.retryAfterMs : undefined,
  })
}
