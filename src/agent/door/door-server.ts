import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Leased } from '../../cache/api/node-api.js'
import { isDscError } from '../../failure/dsc-error.js'
import type { Peer, ReadPeer } from '../../platform/peer-credentials.js'
import { UserDirectory } from '../../platform/user-directory.js'
import { isAdmin } from '../../policy/rights.js'
import { asUsage, fields, readInput, text, whole } from '../calls/fields.js'
import { readJson } from '../calls/prepare-route.js'
import type { Metrics } from '../metrics/metrics.js'
import { createLimitedServer, refuse, sendFailure, stopServer } from '../server/agent-server.js'
import { answerInLines } from '../server/answer-in-lines.js'
import { CLUSTER_OPERATIONS } from './answer-cluster.js'
import { COPY_OPERATIONS } from './answer-copies.js'
import { RECORD_OPERATIONS } from './answer-record.js'
import { STAGING_OPERATIONS } from './answer-staging.js'
import { UPKEEP_OPERATIONS } from './answer-upkeep.js'
import { type DoorCall, type DoorService, look, type Operation, requireRight } from './door-call.js'
import { DoorLimits } from './door-limits.js'
import { listenAtDoor } from './door-socket.js'
import { DOOR_VERSION, type DoorGreeting, type SentOutcome } from './door-wire.js'
import { FirstReads } from './first-reads.js'
import { HandedAccesses, handedAccess } from './handed-access.js'
import { identifyAsker, identifyJob, listNamedGroups } from './identify-asker.js'

const OPERATIONS: Readonly<Record<string, Operation>> = {
  greet: look(fields({}), async ({ service, asker }) =>
    greetingOf(service, asker.shownBy === 'socket' ? asker.uid : undefined),
  ),
  giveAccess: look(
    fields({ call: text, own: handedAccess.optional() }),
    async ({ service, asker }, { call, own }) => service.handed.give(call, { uid: asker.uid, access: own }),
  ),
  noteRead: look(fields({ call: text, waitedMs: whole }), async ({ service, asker }, { call, waitedMs }) =>
    service.reads.note(call, { uid: asker.uid, waitedMs }),
  ),
  ...RECORD_OPERATIONS,
  ...STAGING_OPERATIONS,
  ...COPY_OPERATIONS,
  ...UPKEEP_OPERATIONS,
  ...CLUSTER_OPERATIONS,
}
const PATH = new RegExp(`^/door/${DOOR_VERSION}/([a-zA-Z]{1,32})$`)

interface DoorOptions extends Omit<DoorService, 'handed' | 'reads'> {
  /** Where the socket is. */
  readonly path: string
  /** Whether processes of containers ask there, of which none is an admin. */
  readonly isForJobs: boolean
  readonly readPeer: ReadPeer
  readonly metrics: Metrics
  readonly stopping: AbortSignal
  /** Default: new ones. */
  readonly limits?: DoorLimits | undefined
  readonly note: (sentence: string) => void
}

/** A running door. */
export interface Door {
  /** Accepts nobody new, and gives those inside `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Opens the door of a node's service: a socket that everybody on the machine may connect to. */
export async function openDoor(options: DoorOptions): Promise<Door> {
  const clients = new WeakMap<Socket, Peer>()
  const sockets = new Set<Socket>()
  const handed = new HandedAccesses()
  const reads = new FirstReads()
  const state = {
    clients,
    handed,
    reads,
    limits: options.limits ?? new DoorLimits(),
    directory: new UserDirectory(),
  }
  const server = createLimitedServer(undefined, (request, response) => {
    void answer({ ...options, ...state, request, response })
  })
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => socket.destroy())
    // Before any byte: the kernel names the process that connected, even if another one writes later.
    const peer = options.readPeer(socket)
    const free =
      peer &&
      state.limits.tryTake('connections', { uid: peer.uid, isAdmin: peer.uid === 0 && !options.isForJobs })
    if (peer === undefined || free === undefined) return socket.destroy()
    clients.set(socket, peer)
    sockets.add(socket)
    socket.on('close', () => {
      free()
      sockets.delete(socket)
    })
  })
  await listenAtDoor(server, options.path)
  return { stop: (graceMs) => stopServer(server, sockets, graceMs) }
}

interface Answering extends DoorOptions {
  readonly handed: HandedAccesses
  readonly reads: FirstReads
  readonly clients: WeakMap<Socket, Peer>
  readonly limits: DoorLimits
  readonly directory: UserDirectory
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

async function answer(answering: Answering): Promise<void> {
  const { request, response, metrics, clients, note } = answering
  const name = PATH.exec(request.url ?? '')?.[1]
  const operation = name !== undefined && Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined
  const peer = clients.get(request.socket)
  try {
    if (peer === undefined) refuse(response, 401, 'the kernel does not say who asks')
    else if (operation === undefined || name === undefined) refuse(response, 404, 'there is no such path')
    else if (request.method !== 'POST') refuse(response, 405, 'method')
    else await operate({ ...answering, peer, name, operation })
  } catch (error) {
    if (!isDscError(error)) note(`at the door: ${error instanceof Error ? error.stack : String(error)}`)
    sendFailure(response, error)
  } finally {
    const route = operation === undefined ? 'door none' : `door ${name}`
    metrics.add('dsc_requests_total', { route, status: String(response.statusCode) })
  }
}

async function operate(
  answering: Answering & { readonly peer: Peer; readonly name: string; readonly operation: Operation },
): Promise<void> {
  const { name, operation, peer, limits, directory, request, rules, cache, stopping } = answering
  const groups = listNamedGroups([
    ...rules.admins,
    ...(cache.policy.shares ?? []).map(({ party }) => party),
    ...(cache.declared ?? []).flatMap(({ readers = [] }) => readers),
  ])
  const asker = answering.isForJobs ? identifyJob(peer) : await identifyAsker(peer, { directory, groups })
  const user = { uid: asker.uid, isAdmin: isAdmin(asker, rules) }
  if (!operation.isLook) limits.countChange(user)
  if (operation.isLease) await limits.requireLease(user, cache)
  const free = limits.take(operation.takes ?? 'requests', user)
  try {
    const raw = await readJson(request)
    const who = asker.parties.find((party) => party.startsWith('user:')) ?? `uid ${asker.uid}`
    const note = (sentence: string) => answering.note(`${name} for ${who}: ${sentence}`)
    await answerInLines({ ...answering, note }, async ({ write, ...work }) => {
      const askAccess = () => answering.handed.ask(write, { uid: asker.uid, signal: work.signal })
      const call = { service: answering, cache, asker, peer, askAccess, ...work }
      const result = await perform(operation, call, raw).catch((error: unknown) => {
        // A client that is only cut off comes back to the next service, and goes on.
        if (stopping.aborted) answering.response.destroy()
        throw asUsage(error)
      })
      if (operation.isLease) for (const leaseId of leasesOf(result)) limits.addLease(user, leaseId)
      return { result: result ?? null }
    })
  } finally {
    free()
  }
}

async function perform(operation: Operation, call: DoorCall, raw: unknown): Promise<unknown> {
  const input = readInput(operation.input, raw)
  if (operation.right) requireRight(call, operation.right)
  return operation.answer(call, input)
}

/** The leases that an answer grants: one at most, or one for each node that is ready. */
function leasesOf(result: unknown): readonly string[] {
  if (Array.isArray(result))
    return (result as readonly SentOutcome[]).flatMap((sent) =>
      sent.outcome === 'ready' ? [sent.prepared.leaseId] : [],
    )
  const leased = result as Pick<Leased, 'leaseId'> | undefined
  return leased ? [leased.leaseId] : []
}

function greetingOf({ cache, version }: DoorService, uid: number | undefined): DoorGreeting {
  return {
    ...(uid !== undefined && { uid }),
    node: cache.node,
    cacheRoot: cache.root,
    policy: cache.policy,
    datasets: cache.declared ?? [],
    nowMs: cache.nowMs(),
    version,
  }
}
