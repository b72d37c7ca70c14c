import { isSameMachine, type NodeEntry, type NodeIdentity } from '../model/node.js'

/** A claim to a node's name: by the cache root that this process opened, on the machine it runs on. */
export interface NodeClaim {
  readonly node: string
  readonly cacheRoot: string
  readonly identity: NodeIdentity
}

/** The result of a claim; `holder` is the conflicting entry. */
export type ClaimVerdict =
  | { readonly outcome: 'ours' }
  | { readonly outcome: 'renewed' }
  | { readonly outcome: 'taken' | 'moved' | 'renamed' | 'cloned'; readonly holder: NodeEntry }

/**
 * Decides whether a cache root may act under a node's name. First match wins:
 *
 * | the record knows …                                   | outcome                                          |
 * |------------------------------------------------------|--------------------------------------------------|
 * | this root under another name, on this machine        | `renamed`: the machine or `node:` has a new name |
 * | this root under another name, on another machine     | `cloned`: its disk was copied                    |
 * | the name without identity, or not at all             | `ours`                                           |
 * | the name with this root, on this machine             | `ours`                                           |
 * | the name with this root, on another machine          | `moved`: restored, or its disk was copied        |
 * | the name with another root, same machine and folder  | `renewed`: the folder was emptied on purpose     |
 * | the name with another root                           | `taken`: two under one name                      |
 */
export function judgeNodeClaim(claim: NodeClaim, nodes: readonly NodeEntry[]): ClaimVerdict {
  const { cacheId, machine } = claim.identity
  const elsewhere = nodes.find(({ node, identity }) => node !== claim.node && identity?.cacheId === cacheId)
  if (elsewhere) {
    const isHere = isSameMachine(elsewhere.identity!.machine, machine)
    return { outcome: isHere ? 'renamed' : 'cloned', holder: elsewhere }
  }
  const holder = nodes.find(({ node }) => node === claim.node)
  if (!holder?.identity) return { outcome: 'ours' }
  const isHere = isSameMachine(holder.identity.machine, machine)
  if (holder.identity.cacheId === cacheId) return isHere ? { outcome: 'ours' } : { outcome: 'moved', holder }
  return isHere && holder.cacheRoot === claim.cacheRoot
    ? { outcome: 'renewed' }
    : { outcome: 'taken', holder }
}
