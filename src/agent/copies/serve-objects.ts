import { openCopyFile } from '../../cache/open-copy-file.js'
import { DscError } from '../../failure/dsc-error.js'
import { factsOfEntry } from '../../manifest/facts-of-entry.js'
import { parseUrgency } from '../../model/urgency.js'
import type { QuickFile } from '../../platform/quick-file.js'
import { formatGatheredHead, type GatheredHead, parseObjectsQuery } from '../../sources/gathered-wire.js'
import { formatPartDigest, URGENCY_HEADER, type WireObject } from '../../sources/peer-wire.js'
import { type RouteCall, statusOfFailure } from '../server/agent-server.js'
import type { LocalObject } from './local-copies.js'
import { PackedAnswer } from './packed-answer.js'
import { buffers } from './send-copy-file.js'
import { findObject, room, type ServedObjects } from './serve-object.js'

/**
 * Answers `GET /v1/datasets/<name>/objects?…`: sends many whole objects one after the other, each with the status that
 * it would have alone. Waits for none of them. A busy node answers 425 if the client can get them elsewhere.
 */
export async function serveObjects(served: ServedObjects, call: RouteCall): Promise<void> {
  const { request, response, query, parameters } = call
  const objects = parseObjectsQuery(parameters[0]!, query)
  if (!objects) throw new DscError('USAGE', 'expected source, and key, size, etag and version of each object')
  const bytes = objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  if (parseUrgency(request.headers[URGENCY_HEADER]) !== 'listed') room.force(bytes)
  else if (!(await room.enter(bytes, 0))) {
    response.writeHead(425, { 'retry-after': '0' }).end()
    return
  }
  try {
    await sendObjects(served, { objects, bytes, response })
  } finally {
    room.leave(bytes)
  }
}

async function sendObjects(
  served: ServedObjects,
  {
    objects,
    bytes,
    response,
  }: Pick<RouteCall, 'response'> & { readonly objects: readonly WireObject[]; readonly bytes: number },
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/octet-stream' })
  // Looked up together, so that objects of one download share one look at it.
  const all = await Promise.all(objects.map((object) => find(served, object).catch(statusOfFailure)))
  await buffers.use(bytes, async (buffer) => {
    const answer = new PackedAnswer(response, buffer)
    for (const [index, found] of all.entries()) await put(served, { object: objects[index]!, found }, answer)
    await answer.flush()
    response.end()
  })
}

/** Adds an object to the answer, or the status that says why it is not there. */
async function put(
  served: ServedObjects,
  { object, found }: { readonly object: WireObject; readonly found: LocalObject | number },
  answer: PackedAnswer,
): Promise<void> {
  if (typeof found === 'number') return putStatus(answer, found)
  const file = await openCopyFile(served.cache.root, found.copy, found.path).catch(statusOfFailure)
  if (typeof file === 'number') return putStatus(answer, file)
  const { dataset, sizeBytes } = object
  const head = formatGatheredHead(headOf(found), sizeBytes)
  try {
    await answer.reserve(head.length + sizeBytes)
    const mark = answer.mark()
    try {
      await answer.put(head)
      await putFile(file, sizeBytes, answer)
      served.metrics.add('dsc_sent_bytes_total', { dataset }, sizeBytes)
    } catch (error) {
      if (!answer.takeBack(mark)) throw error
      await putStatus(answer, statusOfFailure(error))
    }
  } finally {
    await file.close()
  }
}

function find(served: ServedObjects, object: WireObject) {
  const range = { offset: 0, length: object.sizeBytes }
  return findObject(served, { object, range }, { holdMs: 0, urgency: 'listed' })
}

function headOf({ entry, part }: LocalObject): GatheredHead {
  return {
    ...{ status: 200, facts: factsOfEntry(entry) },
    digest: part && formatPartDigest(part),
    isProven: entry.state === 'present' || undefined,
  }
}

async function putFile(file: QuickFile, sizeBytes: number, answer: PackedAnswer): Promise<void> {
  for (let at = 0; at < sizeBytes; ) {
    const room = await answer.room()
    const bytesRead = await file.read(room.subarray(0, sizeBytes - at), at)
    if (bytesRead === 0) throw new Error(`a file ends ${sizeBytes - at} bytes early`)
    answer.took(bytesRead)
    at += bytesRead
  }
}

function putStatus(answer: PackedAnswer, status: number): Promise<void> {
  return answer.put(formatGatheredHead({ status }, 0))
}
