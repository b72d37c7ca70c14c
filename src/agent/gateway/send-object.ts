import { existsSync } from 'node:fs'
import { filesDirectory } from '../../cache/cache-layout.js'
import type { DscError } from '../../failure/dsc-error.js'
import { manifestPath } from '../../manifest/manifest-path.js'
import { sendCopyFile } from '../copies/send-copy-file.js'
import type { GatewayClient } from './gateway-client.js'
import type { GatewayCopies } from './gateway-copies.js'
import type { Located } from './located.js'
import { type AskedObject, findAnswer, headersOf } from './object-answer.js'
import { passThrough } from './pass-through.js'

/** From where the bytes of an answer came. */
type SentFrom = 'ready' | 'arriving' | 'origin'

/** The outcome for a client. */
export interface Sent {
  readonly from: SentFrom
  readonly bytes: number
}

/**
 * Answers GET and HEAD of an object from wherever it can be read: the ready copy, the arriving one as soon as the
 * object is proven, else its source, which also sends what somebody removed from a copy. Throws an S3Error before the
 * first byte; what it throws later cuts the answer.
 */
export async function sendObject(
  copies: GatewayCopies,
  asked: AskedObject,
  client: GatewayClient,
): Promise<Sent> {
  return copies.untilFound([asked.dataset], async () => {
    const located = await copies.locate(asked.dataset, client.pins)
    return copies.use(located, () => trySending(copies, located, { ...client, asked }))
  })
}

/** Undefined: the located copy has gone. */
async function trySending(
  copies: GatewayCopies,
  located: Located,
  client: GatewayClient & { readonly asked: AskedObject },
): Promise<Sent | undefined> {
  const { asked, request, response, untilGone } = client
  const found = findAnswer(copies, located, { asked, headers: request.headers })
  if (found === undefined) return undefined
  const { entry, answer } = found
  const from = located.kind === 'passed' ? 'origin' : located.copy.state === 'ready' ? 'ready' : 'arriving'
  const hasBody = request.method === 'GET' && answer.status !== 304 && answer.length > 0
  if (!hasBody) {
    response.writeHead(answer.status, headersOf({ asked, headers: request.headers }, entry, answer)).end()
    return { from, bytes: 0 }
  }
  const onDamage = (failure: DscError) => copies.reportFailure(asked.dataset, failure)
  if (located.kind === 'passed') {
    await passThrough(located.source, { entry, answer, client }, onDamage)
    return { from, bytes: answer.length }
  }
  const path = `${filesDirectory(located.copy.directory)}/${entry.path}`
  if (from === 'arriving' && entry.state !== 'present') {
    const outcome = await copies.waitFor(located.copy, { entry, range: answer }, untilGone())
    if (outcome !== 'there') return undefined
  }
  try {
    const file = { root: copies.root, copy: located.copy, path, range: answer }
    await sendCopyFile(file, response, () => {
      response.writeHead(answer.status, headersOf({ asked, headers: request.headers }, entry, answer))
    })
    return { from, bytes: answer.length }
  } catch (error) {
    if (response.headersSent || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    // Where its manifest is, the copy is in its place: it was not moved, the file alone is gone.
    if (from !== 'ready' || !existsSync(manifestPath(located.copy.directory))) return undefined
    await copies.withSource(asked.dataset, (source) => {
      copies.note(
        `${path} is gone: sending it from the source. Mend the copy: dsc verify ${asked.dataset.name} --repair`,
      )
      return passThrough(source, { entry, answer, client }, onDamage)
    })
    return { from: 'origin', bytes: answer.length }
  }
}
