import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { isLoopback } from '../../model/host-port.js'
import { nameDefaultJob } from '../../platform/default-job.js'
import type { CentralNode } from './central-node.js'
import { decodeHalfGradient } from './half-gradient.js'
import { decodeFrame, encodeFrame, JOB_HEADER } from './message.js'
import { formatUpdateMode } from './plan/update-mode.js'

/** A pull that finds nothing new is answered after this long, so that no proxy closes the connection. */
const MAX_WAIT_MS = 20_000
/** No message may be larger: a guard against a peer that is not one of ours. */
const MAX_MESSAGE_BYTES = 64 * 2 ** 30

const count = z.number().int().nonnegative()
const slots = z.array(z.object({ name: z.string(), shape: z.array(count), layer: count })).min(1)
const beginSchema = z.object({ rank: count, slots })
const pushSchema = z.object({
  rank: count,
  epoch: count,
  step: count,
  baseVersion: count,
  dtype: z.enum(['f32', 'f16']).default('f32'),
  /** Of f16: the power of two that each parameter's gradient was multiplied with. */
  exponents: z.array(z.number().int().min(-120).max(120)).default([]),
})

/** A listening central node. */
export interface ParameterServer {
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves a central node over HTTP: POST /v1/begin and /v1/push, GET /v1/pull and /v1/status. Beyond loopback a
 * token is required.
 */
export async function serveParameters(
  node: CentralNode,
  options: {
    readonly host: string
    readonly port: number
    /** Needed beyond loopback. */
    readonly token?: string | undefined
    /** Workers of another job are refused. Default: `user-` and the number of this process's user. */
    readonly job?: string | undefined
  },
): Promise<ParameterServer> {
  const { host, port, token, job = nameDefaultJob() } = options
  if (!isLoopback(host) && token === undefined) {
    throw new DscError('USAGE', `listening on ${host}, beyond loopback, needs a token`, {
      hint: '--token-file <file>',
    })
  }
  const server = createServer((request, response) => {
    answer(node, request, { response, token, job }).catch((error: unknown) => {
      const status = isDscError(error) ? 400 : 500
      if (!response.headersSent) response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { reason: 'request', message: String(error) } }))
    })
  })
  server.requestTimeout = 0
  server.keepAliveTimeout = 60_000
  await new Promise<void>((settle, fail) => {
    server.once('error', fail)
    server.listen(port, host, () => settle())
  })
  const address = server.address() as AddressInfo
  const shown = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return {
    url: `http://${shown}:${address.port}`,
    async close() {
      await node.close()
      server.closeAllConnections()
      await new Promise<void>((settle) => server.close(() => settle()))
    },
  }
}

async function answer(
  node: CentralNode,
  request: IncomingMessage,
  { response, token, job }: { response: ServerResponse; token: string | undefined; job: string },
): Promise<void> {
  const send = (status: number, body: object) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }
  if (token !== undefined && !hasToken(request, token))
    return send(401, { error: { reason: 'token', message: 'a valid token is needed' } })
  const found = request.headers[JOB_HEADER]
  if (request.url !== '/v1/status' && found !== job) {
    const message = `the server is of job ${job}, this worker of ${found ?? 'none'}: name another server or the job`
    return send(403, { error: { reason: 'job', message } })
  }
  const url = new URL(request.url ?? '/', 'http://server')
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /v1/status':
      return send(200, describe(node))
    case 'GET /v1/pull':
      return pull(node, url, { request, response, send })
    case 'POST /v1/begin': {
      const { header, values } = decodeFrame(await readBody(request))
      const { slots: wanted } = beginSchema.parse(header)
      if (await node.begin(wanted, values)) return send(200, describe(node))
      return send(409, {
        error: { reason: 'layout', message: 'the server holds parameters of another model' },
      })
    }
    case 'POST /v1/push': {
      const { header, values } = decodeFrame(await readBody(request))
      const { dtype, exponents, ...key } = pushSchema.parse(header)
      const gradient = dtype === 'f16' ? widen(node, exponents, values) : values
      const outcome = await node.push(key, gradient)
      if (outcome.kind !== 'refuse') return send(200, { state: outcome.kind, version: node.version })
      const { reason, message } = outcome
      return send(reason === 'nan' || reason === 'overflow' ? 422 : reason === 'aborted' ? 410 : 409, {
        error: { reason, message },
        version: node.version,
        epoch: node.epoch,
      })
    }
    default:
      return send(404, { error: { reason: 'path', message: `no such path: ${url.pathname}` } })
  }
}

async function pull(
  node: CentralNode,
  url: URL,
  io: { request: IncomingMessage; response: ServerResponse; send: (status: number, body: object) => void },
): Promise<void> {
  const number = (name: string, fallback: number) => Number(url.searchParams.get(name) ?? fallback)
  const have = number('have', -1)
  const sameEpoch = number('epoch', -1) === node.epoch
  const limit = AbortSignal.timeout(MAX_WAIT_MS)
  const gone = new AbortController()
  io.response.once('close', () => gone.abort())
  const wanted = { version: number('atLeast', 0), step: number('step', 0), epoch: number('sees', -1) }
  await node.waitFor(wanted, AbortSignal.any([limit, gone.signal]))
  if (gone.signal.aborted) return
  if (node.abortReason !== undefined)
    return io.send(410, { error: { reason: 'aborted', message: node.abortReason } })
  if (limit.aborted || !node.layout) return io.send(202, describe(node))
  const { layout } = node
  // `have` is the version in the half that will be written: what changed since is all it needs.
  const changed = layout.slots
    .map((_, at) => at)
    .filter((at) => !sameEpoch || have < 0 || node.changedAt[at]! > have)
  const isWhole = changed.length === layout.slots.length
  const values = isWhole ? node.parameters : gather(node, changed)
  const rank = number('rank', 0)
  const header = {
    version: node.version,
    epoch: node.epoch,
    lastStep: node.lastSteps[rank] ?? -1,
    ...(isWhole ? {} : { changed }),
  }
  // Copied at once: the next push must not change bytes that are still being sent.
  const parts = encodeFrame(header, values.slice())
  io.response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': parts.reduce((sum, part) => sum + part.length, 0),
  })
  for (const part of parts) io.response.write(part)
  io.response.end()
}

function gather(node: CentralNode, changed: readonly number[]): Float32Array {
  const slots = changed.map((at) => node.layout!.slots[at]!)
  const values = new Float32Array(slots.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const { offset, length } of slots) {
    values.set(node.parameters.subarray(offset, offset + length), at)
    at += length
  }
  return values
}

/** Halves as float32; of another size than the model's they stay as they are, and the node refuses them by size. */
function widen(node: CentralNode, exponents: readonly number[], values: Float32Array): Float32Array {
  const { layout } = node
  const halves = new Uint16Array(values.buffer, values.byteOffset, 2 * values.length)
  if (!layout || halves.length !== layout.length || exponents.length !== layout.slots.length) return values
  return decodeHalfGradient(layout, exponents, halves)
}

function describe(node: CentralNode) {
  const { mode, workers, sgd } = node.options
  return {
    mode: formatUpdateMode(mode),
    workers,
    ...sgd,
    epoch: node.epoch,
    version: node.version,
    lastSteps: node.lastSteps,
    waitingFor: node.missingRanks(),
    parameters: node.layout?.slots.length ?? 0,
    elements: node.layout?.length ?? 0,
    hasBegun: node.layout !== undefined,
    abortReason: node.abortReason ?? null,
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const declared = Number(request.headers['content-length'] ?? Number.NaN)
  if (!(declared <= MAX_MESSAGE_BYTES))
    throw new DscError('PARAMS_REFUSED', 'a message without a content-length')
  const bytes = Buffer.allocUnsafe(declared)
  let at = 0
  for await (const chunk of request as AsyncIterable<Buffer>) at += chunk.copy(bytes, at)
  if (at !== declared) throw new DscError('PARAMS_REFUSED', `${at} of ${declared} bytes arrived`)
  return bytes
}

function hasToken(request: IncomingMessage, token: string): boolean {
  const given = Buffer.from(request.headers.authorization ?? '')
  const wanted = Buffer.from(`Bearer ${token}`)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}
