import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { count } from '../../answers/fields.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { readBody } from '../../frames/body.js'
import { isSecret } from '../../frames/secret.js'
import { isLoopback } from '../../model/host-port.js'
import { nameDefaultJob } from '../../platform/default-job.js'
import { answerPull } from './answer-pull.js'
import type { CentralNode } from './central-node.js'
import { decodeHalfPush } from './half-gradient.js'
import { decodeFrame, JOB_HEADER } from './message.js'
import { formatUpdateMode } from './plan/update-mode.js'

/** Maximum size of a message: a guard against foreign peers. */
const MAX_MESSAGE_BYTES = 64 * 2 ** 30

const rate = z.number().nonnegative()
const slot = z.object({
  name: z.string(),
  shape: z.array(count),
  layer: count,
  kind: z.enum(['parameter', 'buffer']).optional(),
  type: z.enum(['f32', 'bf16', 'f16']).optional(),
  weightDecay: rate.optional(),
  rateScale: rate.optional(),
})
const slots = z.array(slot).min(1)
const beginSchema = z.object({ rank: count, slots })
const pushSchema = z.object({
  rank: count,
  epoch: count,
  step: count,
  baseVersion: count,
  dtype: z.enum(['f32', 'f16']).default('f32'),
  /** For f16: the power of two that each parameter's gradient was multiplied by. */
  exponents: z.array(z.number().int().min(-120).max(120)).default([]),
  absent: z.array(count).optional(),
  learningRate: rate.optional(),
})
const changeSchema = z.strictObject({
  learningRate: rate.optional(),
  weightDecay: rate.optional(),
  momentum: rate.optional(),
  maxNorm: rate.optional(),
})

/** A listening central node. */
export interface ParameterServer {
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves a central node over HTTP: POST /v1/begin, /v1/push and /v1/optimizer, GET /v1/pull and /v1/status. Beyond
 * loopback it requires a token.
 */
export async function serveParameters(
  node: CentralNode,
  options: {
    readonly host: string
    readonly port: number
    /** Required beyond loopback. */
    readonly token?: string | undefined
    /** Workers of another job are refused. Default: `user-` and the number of this process's user. */
    readonly job?: string | undefined
  },
): Promise<ParameterServer> {
  const { host, port, token, job = nameDefaultJob() } = options
  if (!isLoopback(host) && !token) {
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
  if (token !== undefined && !isSecret(request.headers.authorization ?? '', `Bearer ${token}`))
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
      return answerPull(node, url.searchParams, {
        response,
        send: (status, body = describe(node)) => send(status, body),
      })
    case 'POST /v1/optimizer': {
      await node.change(changeSchema.parse(JSON.parse((await readMessage(request)).toString('utf8'))))
      return send(200, describe(node))
    }
    case 'POST /v1/begin': {
      const { header, values } = decodeFrame(await readMessage(request))
      const { slots: wanted } = beginSchema.parse(header)
      if (await node.begin(wanted, values)) return send(200, describe(node))
      return send(409, {
        error: { reason: 'layout', message: 'the server holds parameters of another model' },
      })
    }
    case 'POST /v1/push': {
      const { header, values } = decodeFrame(await readMessage(request))
      const { dtype, exponents, absent, learningRate, ...key } = pushSchema.parse(header)
      const gradient = dtype === 'f16' ? widen(node, exponents, values) : values
      const outcome = await node.push(key, gradient, { absent, learningRate })
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

/**
 * Widens halves to float32. If their size does not match the model's, it leaves them as they are, and the node refuses
 * them by size.
 */
function widen(node: CentralNode, exponents: readonly number[], values: Float32Array): Float32Array {
  const { layout } = node
  if (!layout || exponents.length !== layout.slots.length) return values
  return decodeHalfPush(layout, exponents, values) ?? values
}

function describe(node: CentralNode) {
  const { mode, workers } = node.options
  const { kind, ...settings } = node.optimizer
  return {
    mode: formatUpdateMode(mode),
    workers,
    optimizer: kind,
    ...settings,
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

function readMessage(request: IncomingMessage): Promise<Buffer> {
  return readBody(request, MAX_MESSAGE_BYTES, (problem) => new DscError('PARAMS_REFUSED', problem))
}
