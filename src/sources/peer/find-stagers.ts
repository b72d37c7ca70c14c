import { isSameDefinition } from '../../model/dataset.js'
import { agentUrls } from '../../model/node.js'
import type { PeerSearch } from './find-peers.js'
import { type KnownStaging, mayHave } from './may-have.js'
import type { Stager } from './plan-providers.js'

/**
 * A stager renews its lease every second; one that was silent for so long is not waited for, ms. With all processors
 * busy renewals come 10 s late, and whoever takes over a node's parts meanwhile reads the store once more. Whether a
 * node is there at all its connections say sooner.
 */
const SILENT_STAGER_MS = 30_000

/**
 * Finds the nodes that stage whole copies of the dataset just now, or have given up, and have an agent; this node
 * among them with the URL `''` if others can ask it. `invited`: nodes that were told to begin together with it.
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
