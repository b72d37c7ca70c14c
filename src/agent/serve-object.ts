import type { Cache } from '../cache/cache.js'
import { factsOfEntry } from '../cache/manifest/facts-of-entry.js'
import {
  DIGEST_HEADER,
  FACTS_HEADER,
  formatPartDigest,
  NO_WAIT_HEADER,
  PROVEN_HEADER,
  parseObjectQuery,
  URGENCY_HEADER,
} from '../cache/sources/peer-wire.js'
import { DscError } from '../failure/dsc-error.js'
import { parseUrgency } from '../model/urgency.js'
import type { RouteCall } from './agent-server.js'
import type { ArrivingObjects } from './arriving-objects.js'
import type { Range } from './local-copies.js'
import { isOfSource, type LocalCopies, type LocalObject } from './local-copies.js'
import type { Metrics } from './metrics.js'
import { sendCopyFile } from './send-copy-file.js'

/** A question for a part that is still arriving is held for so long, ms; then the client may ask again. */
const HOLD_MS = 8000

/** Answers `GET /v1/datasets/<name>/object?…`: the bytes of an object, or of a range of it. */
export async function serveObject(
  served: {
    readonly copies: LocalCopies
    readonly arriving: ArrivingObjects
    readonly metrics: Metrics
    readonly cache: Pick<Cache, 'root'>
  },
  call: RouteCall,
): Promise<void> {
  const { request, response, query } = call
  const dataset = call.parameters[0]!
  const object = parseObjectQuery(dataset, query)
  if (!object) throw new DscError('USAGE', 'expected source, key and size in the query')
  const range = parseRange(request.headers.range, object.sizeBytes)
  if (range === undefined) {
    response.writeHead(416, { 'content-range': `bytes */${object.sizeBytes}` }).end()
    return
  }
  let found = await served.copies.findReady(object, range)
  if (!found) {
    const staging = (await served.copies.list(dataset)).find(
      (copy) => copy.state === 'staging' && !copy.stripe && isOfSource(copy, object),
    )
    if (!staging) {
      response.writeHead(404).end()
      return
    }
    const isHeld =
      staging.isBeingStaged && request.method !== 'HEAD' && request.headers[NO_WAIT_HEADER] === undefined
    const arrived = await served.arriving.wait(
      staging,
      { object, range },
      { limitMs: isHeld ? HOLD_MS : 0, urgency: parseUrgency(request.headers[URGENCY_HEADER]) ?? 'listed' },
    )
    if (arrived === 'early' || arrived === 'other') {
      const early = staging.isBeingStaged ? 425 : 404
      response.writeHead(arrived === 'early' ? early : 409, { 'retry-after': '0' }).end()
      return
    }
    found = arrived
  }
  await send(found, range, { ...call, root: served.cache.root })
  served.metrics.add('dsc_sent_bytes_total', { dataset }, range.length)
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

/** Reads `bytes=a-b`; the whole object without a header; undefined for what cannot be served. */
export function parseRange(header: string | undefined, sizeBytes: number): Range | undefined {
  if (header === undefined) return { offset: 0, length: sizeBytes }
  const match = /^bytes=(\d{1,16})-(\d{1,16})$/.exec(header)
  if (!match) return undefined
  const [offset, last] = [Number(match[1]), Number(match[2])]
  return offset <= last && last < sizeBytes ? { offset, length: last - offset + 1 } : undefined
}
