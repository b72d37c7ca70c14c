import type { Cache } from '../../cache/cache.js'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { factsOfEntry } from '../../manifest/facts-of-entry.js'
import { parseUrgency, type Urgency } from '../../model/urgency.js'
import {
  DIGEST_HEADER,
  FACTS_HEADER,
  formatPartDigest,
  NO_WAIT_HEADER,
  PROVEN_HEADER,
  parseObjectQuery,
  URGENCY_HEADER,
  type WireObject,
} from '../../sources/peer-wire.js'
import type { Metrics } from '../metrics/metrics.js'
import type { RouteCall } from '../server/agent-server.js'
import type { ArrivingObjects } from './arriving-objects.js'
import type { Range } from './local-copies.js'
import { isOfSource, type LocalCopies, type LocalObject } from './local-copies.js'
import { sendCopyFile } from './send-copy-file.js'
import { SendRoom } from './send-room.js'

/** How long a request for a part that is still downloading is held, in ms; after that, the client may ask again. */
const HOLD_MS = 8000
/** How often a node that holds a request signals so, in ms: the caller gives up on a node that is silent for 12 s. */
const SIGN_MS = 3000
/** Shared by all that this process sends. */
export const room = new SendRoom()

/** Everything that an agent needs to send objects to other nodes. */
export interface ServedObjects {
  readonly copies: LocalCopies
  readonly arriving: ArrivingObjects
  readonly metrics: Metrics
  readonly cache: Pick<Cache, 'root'>
}

/** Answers `GET /v1/datasets/<name>/object?…`: the bytes of an object, or of a range of it. */
export async function serveObject(served: ServedObjects, call: RouteCall): Promise<void> {
  const { request, response, query } = call
  const dataset = call.parameters[0]!
  const object = parseObjectQuery(dataset, query)
  if (!object) throw new DscError('USAGE', 'expected source, key and size in the query')
  const range = parseRange(request.headers.range, object.sizeBytes)
  if (range === undefined) {
    response.writeHead(416, { 'content-range': `bytes */${object.sizeBytes}` }).end()
    return
  }
  const found = await findWithRoom(served, { object, range }, call)
  if (typeof found === 'number') {
    response.writeHead(found, found === 404 ? {} : { 'retry-after': '0' }).end()
    return
  }
  try {
    await send(found, range, { ...call, root: served.cache.root })
  } finally {
    room.leave(range.length)
  }
  served.metrics.add('dsc_sent_bytes_total', { dataset }, range.length)
}

/** Does the same as `findObject` and takes room for the bytes to send; 425 also if there is no room. */
async function findWithRoom(
  served: ServedObjects,
  asked: { readonly object: WireObject; readonly range: Range },
  { request, response }: Pick<RouteCall, 'request' | 'response'>,
): Promise<LocalObject | 404 | 409 | 425> {
  const heldUntilMs = performance.now() + HOLD_MS
  const isHeld = request.method !== 'HEAD' && request.headers[NO_WAIT_HEADER] === undefined
  const urgency = parseUrgency(request.headers[URGENCY_HEADER])
  const wish = { holdMs: isHeld ? HOLD_MS : 0, urgency: urgency ?? 'listed' } as const
  const signs = isHeld ? setInterval(() => response.writeProcessing(), SIGN_MS) : undefined
  using _ = atEndNow(() => clearInterval(signs))
  const found = await findObject(served, asked, wish)
  if (typeof found === 'number') return found
  const { length } = asked.range
  // A request that nobody needs soon can wait, or go to another node.
  const patienceMs = isHeld ? heldUntilMs - performance.now() : 0
  if (urgency !== 'listed' || request.method === 'HEAD') room.force(length)
  else if (!(await room.enter(length, patienceMs))) return 425
  return found
}

/**
 * Finds a range of an object among this node's copies. Otherwise returns a status: 404, no copy has it; 409, it is
 * another version; 425, it is still downloading and did not arrive within `holdMs`.
 */
export async function findObject(
  { copies, arriving }: Pick<ServedObjects, 'copies' | 'arriving'>,
  asked: { readonly object: WireObject; readonly range: Range },
  wish: { readonly holdMs: number; readonly urgency: Urgency },
): Promise<LocalObject | 404 | 409 | 425> {
  const ready = await copies.findReady(asked.object, asked.range)
  if (ready) return ready
  const staging = (await copies.list(asked.object.dataset)).find(
    (copy) => copy.state === 'staging' && !copy.stripe && isOfSource(copy, asked.object),
  )
  if (!staging) return 404
  const limitMs = staging.isBeingStaged ? wish.holdMs : 0
  const arrived = await arriving.wait(staging, asked, { limitMs, urgency: wish.urgency })
  if (arrived === 'other') return 409
  if (arrived === 'early') return staging.isBeingStaged ? 425 : 404
  return arrived
}

async function send(
  found: LocalObject,
  range: Range,
  { root, request, response }: RouteCall & { readonly root: string },
): Promise<void> {
  if (request.method === 'HEAD') {
    writeHead(found, range, { request, response })
    response.end()
    return
  }
  const { copy, path } = found
  await sendCopyFile({ root, copy, path, range }, response, () =>
    writeHead(found, range, { request, response }),
  )
}

function writeHead(
  { entry, part }: LocalObject,
  { offset, length }: Range,
  { request, response }: Pick<RouteCall, 'request' | 'response'>,
): void {
  const head = {
    'content-length': length,
    'content-type': 'application/octet-stream',
    [FACTS_HEADER]: JSON.stringify(factsOfEntry(entry)),
    ...(part ? { [DIGEST_HEADER]: formatPartDigest(part) } : {}),
    ...(entry.state === 'present' ? { [PROVEN_HEADER]: '1' } : {}),
  }
  if (request.headers.range === undefined) response.writeHead(200, head)
  else {
    const contentRange = `bytes ${offset}-${offset + length - 1}/${entry.sizeBytes}`
    response.writeHead(206, { ...head, 'content-range': contentRange })
  }
}

/** Reads `bytes=a-b`. Without a header: the whole object. Undefined if the range cannot be served. */
export function parseRange(header: string | undefined, sizeBytes: number): Range | undefined {
  if (header === undefined) return { offset: 0, length: sizeBytes }
  const match = /^bytes=(\d{1,16})-(\d{1,16})$/.exec(header)
  if (!match) return undefined
  const [offset, last] = [Number(match[1]), Number(match[2])]
  return offset <= last && last < sizeBytes ? { offset, length: last - offset + 1 } : undefined
}
