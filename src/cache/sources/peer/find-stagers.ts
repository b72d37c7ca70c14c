import { isSameDefinition } from '../../../model/dataset.js'
import { agentUrls } from '../../../model/node.js'
import type { PeerSearch } from './find-peers.js'
import type { Stager } from './plan-providers.js'

/** A stager renews its lease every second; one that was silent for so long is not waited for, ms. */
const SILENT_STAGER_MS = 10_000

/**
 * Finds the nodes that stage whole copies of the dataset just now, or have given up, and have an agent; this node
 * among them with the URL `''` if others can ask it.
 */
export async function findStagers({ record, node, dataset }: PeerSearch): Promise<readonly Stager[]> {
  const nowMs = record.nowMs()
  const copies = await record.listCopies({ dataset: dataset.name, states: ['reserved', 'staging'] }, nowMs)
  const stagings = copies.filter(
    ({ stripe, source }) => !stripe && source && isSameDefinition(source, dataset),
  )
  if (stagings.every((copy) => copy.node === node)) return []
  const leases = await record.listLeases({ dataset: dataset.name, purpose: 'stage' })
  const active = new Set(
    leases.filter(({ renewedAtMs }) => nowMs - renewedAtMs < SILENT_STAGER_MS).map(({ copyId }) => copyId),
  )
  const agents = agentUrls(await record.listNodes(), nowMs)
  const beganAtMs = stagings.find((copy) => copy.node === node)?.createdAtMs ?? nowMs
  return stagings.flatMap((copy) => {
    const url = agents.get(copy.node)
    if (url === undefined) return []
    const isOwn = copy.node === node
    const isStaging = active.has(copy.copyId)
    const mayHave = !isOwn && (!isStaging || copy.createdAtMs <= beganAtMs)
    return [{ node: copy.node, url: isOwn ? '' : url, isStaging, mayHave }]
  })
}
