import { isSameDefinition } from '../../model/dataset.js'
import { agentUrls } from '../../model/node.js'
import type { PeerSearch } from './find-peers.js'
import { type KnownStaging, mayHave } from './may-have.js'
import type { Stager } from './plan-providers.js'

/**
 * Silence after which a stager is no longer waited for, in ms. A stager renews its lease every second; with all
 * processors busy renewals come 10 s late, and taking over its parts too early means reading the store once more.
 * Connections tell sooner whether the node is up at all.
 */
const SILENT_STAGER_MS = 30_000

/**
 * Finds the nodes with an agent that are staging whole copies of the dataset or have given up, including this node with
 * the URL `''` if others can reach it. `invited`: nodes told to begin together with it.
 */
export async function findStagers(
  { record, node, dataset }: PeerSearch,
  invited: ReadonlySet<string>,
): Promise<readonly Stager[]> {
  const nowMs = record.nowMs()
  const copies = await record.listCopies({ dataset: dataset.name, states: ['reserved', 'staging'] }, nowMs)
  const staged = copies.filter(({ stripe, source }) => !stripe && source && isSameDefinition(source, dataset))
  if (staged.every((copy) => copy.node === node)) return []
  const leases = await record.listLeases({ dataset: dataset.name, purpose: 'stage' })
  const stagers = new Map(leases.map((lease) => [lease.copyId, lease]))
  const agents = agentUrls(await record.listNodes(), nowMs)
  const stagings = staged.map((copy): KnownStaging => {
    const stager = stagers.get(copy.copyId)
    const isStaging = stager !== undefined && nowMs - stager.renewedAtMs < SILENT_STAGER_MS
    return { node: copy.node, createdAtMs: copy.createdAtMs, stager, isStaging }
  })
  const own = stagings.find((staging) => staging.node === node)
  return stagings.flatMap((staging): readonly Stager[] => {
    const url = agents.get(staging.node)
    if (url === undefined) return []
    const { isStaging } = staging
    if (staging.node === node) return [{ node, url: '', isStaging, mayHave: false }]
    return [{ node: staging.node, url, isStaging, mayHave: mayHave(staging, own, invited) }]
  })
}
