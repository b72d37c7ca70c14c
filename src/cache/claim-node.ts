import { DscError } from '../failure/dsc-error.js'
import type { MachineIdentity, NodeIdentity } from '../model/node.js'
import { readMachine } from '../platform/machine-identity.js'
import { type ClaimVerdict, judgeNodeClaim, type NodeClaim } from '../policy/judge-node-claim.js'
import type { RecordStore } from '../records/contract/record-store.js'
import { openCacheRoot, renewCacheId } from './open-cache-root.js'
import { governBy } from './own-record.js'

/** Rejects with NODE_TAKEN if the name belongs to another cache root or machine. */
export async function requireOwnNode(record: RecordStore, claim: NodeClaim): Promise<void> {
  const verdict = judgeNodeClaim(claim, await record.listNodes())
  if (verdict.outcome === 'renewed') await record.claimNode(claim.node, claim.identity)
  else if (verdict.outcome !== 'ours') throw explainClaim(claim, verdict)
}

/**
 * Makes the name stand for this cache root on this machine, regardless of the record. If the record knows the root by
 * another name, its copies move to the new one. `isNew` first gives the root a new identity.
 */
export async function claimNode(options: {
  readonly record: RecordStore
  readonly node: string
  readonly cacheRoot: string
  readonly isNew: boolean
  /** Name of the record, which governs the cache from now on. */
  readonly recordName: string
}): Promise<{ readonly cacheId: string; readonly renamedFrom: string | undefined }> {
  const { record, node, cacheRoot } = options
  const cacheId = options.isNew
    ? await renewCacheId(cacheRoot)
    : await openCacheRoot(cacheRoot, { hasCopies: async () => false })
  await governBy(cacheRoot, { id: cacheId, record: options.recordName })
  const identity = { cacheId, machine: readMachine() }
  const nodes = await record.listNodes()
  const known = nodes.find((entry) => entry.identity?.cacheId === cacheId && entry.node !== node)
  if (known) await record.renameNode(known.node, node)
  await record.claimNode(node, identity)
  return { cacheId, renamedFrom: known?.node }
}

/** Rejects with NODE_TAKEN if a root without an identity cannot become the node because another root already is. */
export async function requireFreeNode(
  record: RecordStore,
  claim: Omit<NodeClaim, 'identity'> & { readonly machine: MachineIdentity },
): Promise<void> {
  const { machine, ...rest } = claim
  const unmarked = { ...rest, identity: { cacheId: 'unmarked', machine } }
  const verdict = judgeNodeClaim(unmarked, await record.listNodes())
  if ('holder' in verdict) throw explainClaim(unmarked, verdict)
}

type Refusal = Extract<ClaimVerdict, { readonly holder: unknown }>

function explainClaim(claim: NodeClaim, { outcome, holder }: Refusal): DscError {
  const { node, cacheRoot } = claim
  const mine = describe(cacheRoot, claim.identity)
  const theirs = describe(holder.cacheRoot, holder.identity!)
  switch (outcome) {
    case 'taken':
      return refuse(`node ${node} is ${theirs}; here is ${mine}`, [
        'give this one a name of its own (`node:` in dsc.yaml, or DSC_NODE)',
        'if the other is gone for good: dsc record claim-node',
      ])
    case 'moved':
      return refuse(`node ${node} was ${theirs}; its cache is now ${mine}`, [
        'if the machine was restored or its disk moved here: dsc record claim-node',
        'if the disk was copied: another `node:` in dsc.yaml, then dsc record claim-node --new',
      ])
    case 'renamed':
      return refuse(`${mine} is node ${holder.node} in the record, not ${node}`, [
        `to go on under the new name: dsc record claim-node; to keep the old one: \`node: ${holder.node}\` in dsc.yaml`,
      ])
    case 'cloned':
      return refuse(`${mine} has the identity of node ${holder.node}, which is ${theirs}`, [
        'if the disk was copied: dsc record claim-node --new',
        `if it was moved here: \`node: ${holder.node}\` in dsc.yaml, then dsc record claim-node`,
      ])
  }
}

function refuse(message: string, hints: readonly string[]): DscError {
  return new DscError('NODE_TAKEN', message, { hint: hints.join('; ') })
}

function describe(cacheRoot: string, { machine, cacheId }: NodeIdentity): string {
  return `${cacheRoot} (${cacheId === 'unmarked' ? 'no cache yet' : `cache ${cacheId.slice(0, 8)}`}) on ${machine.host} (machine ${machine.id.replace(/^boot:/, '').slice(0, 8)})`
}
