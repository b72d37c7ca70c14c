import type { ServerResponse } from 'node:http'
import { openCopyFile, openCopyFileHere } from '../../cache/open-copy-file.js'
import { atEnd, atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { factsOfEntry } from '../../manifest/facts-of-entry.js'
import { parseUrgency } from '../../model/urgency.js'
import type { QuickFile } from '../../platform/quick-file.js'
import { formatGatheredHead, type GatheredHead, parseObjectsQuery } from '../../sources/gathered-wire.js'
import { formatPartDigest, URGENCY_HEADER, type WireObject } from '../../sources/peer-wire.js'
import { type RouteCall, statusOfFailure } from '../server/agent-server.js'
import type { LocalObject } from './local-copies.js'
import { buffers, writeChunk } from './send-copy-file.js'
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
  using _ = atEndNow(() => room.leave(bytes))
  await sendObjects(served, { objects, bytes, response })
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
  const file = await open(served, found)
  if (typeof file === 'number') return putStatus(answer, file)
  const { dataset, sizeBytes } = object
  const head = formatGatheredHead(headOf(found), sizeBytes)
  await using _ = atEnd(() => file.close())
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
}

/** At once where no disk makes this thread wait; otherwise, or if the file must not be sent, as `openCopyFile` does. */
async function open(
  { cache: { root } }: ServedObjects,
  { copy, path }: LocalObject,
): Promise<QuickFile | number> {
  try {
    return openCopyFileHere(root, copy, path) ?? (await openCopyFile(root, copy, path))
  } catch (error) {
    return statusOfFailure(error)
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

/** A place in an answer to which `takeBack` can return. */
interface Mark {
  readonly sentBytes: number
  readonly usedBytes: number
}

/** Packs many small pieces of an answer into one buffer, and sends it when it is full. */
class PackedAnswer {
  readonly #response: ServerResponse
  readonly #buffer: Buffer
  #usedBytes = 0
  #sentBytes = 0

  constructor(response: ServerResponse, buffer: Buffer) {
    this.#response = response
    this.#buffer = buffer
  }

  /** Makes room for this many bytes, up to the buffer's size, so that they can be taken back until complete. */
  async reserve(bytes: number): Promise<void> {
    if (this.#usedBytes + bytes > this.#buffer.length) await this.flush()
  }

  /** Memory for the next bytes, at least one; report with `took` how many you filled. */
  async room(): Promise<Buffer> {
    if (this.#usedBytes === this.#buffer.length) await this.flush()
    return this.#buffer.subarray(this.#usedBytes)
  }

  took(bytes: number): void {
    this.#usedBytes += bytes
  }

  async put(bytes: Buffer): Promise<void> {
    for (let rest = bytes; rest.length > 0; ) {
      const taken = rest.copy(await this.room())
      this.took(taken)
      rest = rest.subarray(taken)
    }
  }

  mark(): Mark {
    return { sentBytes: this.#sentBytes, usedBytes: this.#usedBytes }
  }

  /** Takes back everything since the mark. Returns false if some of it was already sent. */
  takeBack({ sentBytes, usedBytes }: Mark): boolean {
    if (sentBytes !== this.#sentBytes) return false
    this.#usedBytes = usedBytes
    return true
  }

  /** Sends the buffered bytes. Rejects when the client has gone. */
  async flush(): Promise<void> {
    const piece = this.#buffer.subarray(0, this.#usedBytes)
    if (piece.length === 0) return
    this.#sentBytes += piece.length
    this.#usedBytes = 0
    await writeChunk(this.#response, piece)
  }
}
