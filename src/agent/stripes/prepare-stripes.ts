import type { Reservation } from '../../cache/prepare/reserve-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { isSameDefinition } from '../../model/dataset.js'
import { cancelOnNode, reserveOnNode } from '../calls/agent-client.js'
import {
  type ClusterWays,
  findAgents,
  type NodeOutcome,
  type NodesRequest,
  tryOnNode,
} from '../calls/prepare-on-nodes.js'

/** Which stripes of a dataset to place on which nodes, and for which lease. */
export interface StripesRequest extends NodesRequest, ClusterWays {
  /** The nodes of all stripes, in order. */
  readonly nodes: readonly string[]
  /** The stripes to prepare; absent: all. */
  readonly indexes?: readonly number[]
  /** The version to prepare; absent: the newest that these nodes have, else the source's. */
  readonly version?: string | undefined
  /** Called once every node has room, before any byte is downloaded. */
  readonly onReserved?: (version: string) => Promise<void>
}

interface Target {
  readonly index: number
  readonly node: string
  readonly url: string
}

interface Reserved {
  readonly target: Target
  readonly reservation: Reservation
}

interface Before {
  /** Leases that the task already had, and keeps. */
  readonly leases: ReadonlySet<string>
  /** Copies that this call reserved first. */
  readonly made: Set<string>
}

/**
 * Asks agents to stage the stripes of one version: object i on node i mod N. First every node lists the source and
 * reserves room for its stripe; if one cannot, or they see different versions, all reservations are cancelled and
 * nothing is downloaded. Resolves with one outcome per stripe; a failing download does not hold up the others.
 */
export async function prepareStripes(request: StripesRequest): Promise<readonly NodeOutcome[]> {
  const { nodes, record, dataset } = request
  if (new Set(nodes).size < nodes.length || nodes.length === 0) {
    throw new DscError('USAGE', `expected different nodes, found ${nodes.join(',') || 'none'}`, {
      hint: 'a node holds one stripe of a dataset: name every node once',
    })
  }
  const indexes = request.indexes ?? nodes.map((_, index) => index)
  const urls = await findAgents(
    record,
    indexes.map((index) => nodes[index]!),
  )
  const targets = indexes.map((index): Target => {
    const node = nodes[index]!
    return { index, node, url: urls.get(node)! }
  })
  const before: Before = {
    leases: new Set((await record.listLeases({ dataset: dataset.name })).map(({ leaseId }) => leaseId)),
    made: new Set(),
  }
  const wanted = request.version ?? (request.isRefresh ? undefined : await findVersion(request))
  let reserved = await reserveAll(request, targets, { before, version: wanted, isRelisted: false })
  if (wanted === undefined && countVersions(reserved) > 1) {
    // Some listings may be left over from an earlier attempt: list on all nodes now.
    reserved = await reserveAll(request, targets, { before, version: undefined, isRelisted: true })
  }
  const version = reserved[0]!.reservation.version
  if (countVersions(reserved) > 1 || version !== (wanted ?? version)) {
    await giveUp(request, reserved, before)
    const seen = reserved.map(
      ({ target, reservation }) => `${target.node} ${reservation.version.slice(0, 12)}`,
    )
    throw new DscError(
      'SOURCE_CHANGED',
      `${dataset.name}: the nodes see different versions of ${dataset.source}: ${seen.join(', ')}${wanted === undefined ? '' : `, expected ${wanted.slice(0, 12)}`}; nothing was fetched`,
      { hint: `dsc prepare ${dataset.name} --stripe ${nodes.join(',')} --refresh` },
    )
  }
  await request.onReserved?.(version)
  return Promise.all(targets.map((target) => prepareStripe(request, target, version)))
}

function prepareStripe(
  request: StripesRequest,
  { index, ...agent }: Target,
  version: string,
): Promise<NodeOutcome> {
  const { dataset, lease, nodes, bandwidthBytesPerSecond } = request
  const asked = { dataset, lease, stripe: { index, nodes }, version, bandwidthBytesPerSecond }
  return tryOnNode(request, agent, { ...asked, isRefresh: false, sharedWith: [] })
}

/** Reserves on all nodes, or on none. */
async function reserveAll(
  request: StripesRequest,
  targets: readonly Target[],
  how: { readonly before: Before; readonly version: string | undefined; readonly isRelisted: boolean },
): Promise<readonly Reserved[]> {
  const { dataset, lease, nodes, isRefresh, access, signal } = request
  const { before, version, isRelisted } = how
  const answers = await Promise.allSettled(
    targets.map(async (target): Promise<Reserved> => {
      const { node, url, index } = target
      const stripe = { index, nodes }
      const reservation = await reserveOnNode({
        ...{ node, url, access, signal },
        call: { dataset, lease, isRefresh, isRelisted, sharedWith: [], stripe, version },
        onProgress: (progress) => request.onProgress(node, progress),
      })
      if (reservation.isNew) before.made.add(reservation.copyId)
      return { target, reservation }
    }),
  )
  const reserved = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  const failures = answers.flatMap((answer) =>
    answer.status === 'rejected' ? [answer.reason as unknown] : [],
  )
  if (failures.length === 0) return reserved
  await giveUp(request, reserved, before)
  const known = failures.filter((failure) => failure instanceof DscError)
  if (known.length < failures.length) throw failures.find((failure) => !(failure instanceof DscError))
  const isOneKind = known.every(({ code }) => code === known[0]!.code)
  throw new DscError(
    isOneKind ? known[0]!.code : 'NODES_FAILED',
    `${known.map(({ message }) => message).join('; ')}; nothing was fetched on any node`,
    { hint: known[0]!.hint },
  )
}

/** Undoes this call's reservations and leases. A node that no longer answers drops them when it needs the room. */
async function giveUp(request: StripesRequest, reserved: readonly Reserved[], before: Before): Promise<void> {
  const { record, access } = request
  await Promise.all(
    reserved.map(async ({ target, reservation }) => {
      const { leaseId, copyId } = reservation
      if (!before.leases.has(leaseId)) await record.releaseUses({ leaseId }, record.nowMs())
      if (!before.made.has(copyId)) return
      // Use a fresh signal: an interrupted caller may be the reason for this.
      const { node, url } = target
      await cancelOnNode({ node, url, access, copyId, signal: AbortSignal.timeout(10_000) }).catch(
        (error: unknown) => {
          if (!(error instanceof DscError)) throw error
        },
      )
    }),
  )
}

/** The version of the newest copy that these nodes have, whole or as stripes on the same nodes. */
async function findVersion({ record, dataset, nodes }: StripesRequest): Promise<string | undefined> {
  const copies = await record.listCopies({ dataset: dataset.name, states: ['ready'] }, record.nowMs())
  const usable = copies.filter(
    (copy) =>
      nodes.includes(copy.node) &&
      (!copy.stripe || copy.stripe.nodes.join('\0') === nodes.join('\0')) &&
      (copy.source === null || isSameDefinition(copy.source, dataset)),
  )
  return usable.toSorted((a, b) => (b.readyAtMs ?? 0) - (a.readyAtMs ?? 0))[0]?.version ?? undefined
}

function countVersions(reserved: readonly Reserved[]): number {
  return new Set(reserved.map(({ reservation }) => reservation.version)).size
}
