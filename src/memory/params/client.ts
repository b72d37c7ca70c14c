import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { encodeFrame } from './frame.js'
import { encodeHalfGradient } from './half-gradient.js'
import { type Mirror, openMirror } from './mirror.js'
import { layOutParameters, type ParameterLayout, type ParameterSlot } from './plan/parameter-layout.js'
import { type PullNews, receivePull } from './receive-pull.js'

/** What a push came to. `refused`: pull and compute the gradient again; nothing was applied. */
export type PushResult =
  | { readonly state: 'applied' | 'waiting' | 'duplicate'; readonly version: number }
  | { readonly state: 'refused'; readonly reason: 'stale' | 'ahead' | 'epoch'; readonly message: string }

/** A worker's connection to the central node, and its mirror of the parameters. */
export interface ParameterClient {
  readonly mirror: Mirror
  readonly layout: ParameterLayout
  /** Life of the server this client last pulled from, and this rank's last applied step there. */
  readonly epoch: number
  readonly lastStep: number
  /**
   * Waits for a version of at least `atLeast` (and, in ssp mode, leave to begin `step`), into the mirror. Returns the
   * version it got: a lower one after a restart of the server, when pushes of its earlier life are gone.
   */
  pull(options?: { atLeast?: number; step?: number; signal?: AbortSignal }): Promise<number>
  push(gradient: Float32Array, step: number, options?: { signal?: AbortSignal }): Promise<PushResult>
  close(): void
}

/** How long an unreachable server is tried again before a call fails, and the pause between tries, in ms. */
const PATIENCE_MS = 30_000
const PAUSE_MS = 100

/**
 * Opens a worker's client. The first worker's `values` become the parameters; the others get the server's by their
 * first pull. A server that restarts is waited for.
 */
export async function openParameterClient(options: {
  readonly url: string
  readonly rank: number
  readonly slots: readonly ParameterSlot[]
  /** Initial parameters in the layout of `slots`. */
  readonly values: Float32Array
  readonly token?: string | undefined
  readonly patienceMs?: number | undefined
  /** How gradients travel: float32 (default), or scaled halves, which are half the bytes and rounded to 11 bits. */
  readonly pushType?: 'f32' | 'f16' | undefined
  readonly signal?: AbortSignal
}): Promise<ParameterClient> {
  const { rank, slots, values, pushType = 'f32' } = options
  const layout = layOutParameters(slots)
  const mirror = openMirror(layout.length)
  const agent = new Agent({ keepAlive: true, maxSockets: 2 })
  const call = (
    path: string,
    body: Buffer[] | undefined,
    signal: AbortSignal | undefined,
    receive?: (response: IncomingMessage) => Promise<void>,
  ) => callPatiently({ ...options, path, body, signal, agent, receive })
  await call('/v1/begin', encodeFrame({ rank, slots }, values), options.signal)
  const encodePush = (header: object, gradient: Float32Array) => {
    if (pushType === 'f32') return encodeFrame(header, gradient)
    const { exponents, halves } = encodeHalfGradient(layout, gradient)
    return encodeFrame({ ...header, dtype: 'f16', exponents }, halves)
  }
  let epoch = -1
  let lastStep = -1
  /** Versions in the halves, newest first; what the inactive half has decides what it needs. */
  let held: readonly { epoch: number; version: number }[] = []
  return {
    mirror,
    layout,
    get epoch() {
      return epoch
    },
    get lastStep() {
      return lastStep
    },
    async pull({ atLeast = 0, step = 0, signal } = {}) {
      for (;;) {
        const inactive = held[1]
        const query = new URLSearchParams({
          have: String(inactive?.version ?? -1),
          epoch: String(inactive?.epoch ?? -1),
          sees: String(epoch),
          atLeast: String(atLeast),
          step: String(step),
          rank: String(rank),
        })
        let news: PullNews | undefined
        await call(`/v1/pull?${query}`, undefined, signal, async (response) => {
          const older = held
          held = held.slice(0, 1) // until it is whole, the inactive half has no version
          news = await receivePull(response, mirror, layout)
          held = older
        })
        if (!news) continue
        held = [{ epoch: news.epoch, version: news.version }, ...held.slice(0, 1)]
        epoch = news.epoch
        lastStep = news.lastStep
        return news.version
      }
    },
    async push(gradient, step, { signal } = {}) {
      const header = { rank, epoch, step, baseVersion: mirror.version }
      const { status, bytes } = await call('/v1/push', encodePush(header, gradient), signal)
      const body = JSON.parse(bytes.toString('utf8')) as PushBody
      if (status === 200) return { state: body.state!, version: body.version! }
      return { state: 'refused', reason: body.error!.reason, message: body.error!.message }
    },
    close: () => agent.destroy(),
  }
}

interface PushBody {
  readonly state?: 'applied' | 'waiting' | 'duplicate'
  readonly version?: number
  readonly error?: { readonly reason: 'stale' | 'ahead' | 'epoch'; readonly message: string }
}

interface Call {
  readonly url: string
  readonly path: string
  readonly body: Buffer[] | undefined
  readonly token?: string | undefined
  readonly patienceMs?: number | undefined
  readonly signal: AbortSignal | undefined
  readonly agent: Agent
  /** Takes the body of a 200 itself; when it rejects, the call is made again. */
  readonly receive?: ((response: IncomingMessage) => Promise<void>) | undefined
}

/** Calls until the server answers; what it refuses for good becomes a DscError. */
async function callPatiently(call: Call): Promise<{ status: number; bytes: Buffer }> {
  const deadlineMs = performance.now() + (call.patienceMs ?? PATIENCE_MS)
  for (;;) {
    try {
      const answer = await callOnce(call)
      if (answer.status === 200 || answer.status === 202) return answer
      const { error } = JSON.parse(answer.bytes.toString('utf8')) as {
        error: { reason: string; message: string }
      }
      if (['stale', 'ahead', 'epoch'].includes(error.reason)) return answer
      if (error.message !== 'the server is stopping') throw new DscError('PARAMS_REFUSED', error.message)
    } catch (cause) {
      const isFinal = isDscError(cause) && !cause.isRetryable
      if (isFinal || call.signal?.aborted) throw cause
      if (performance.now() > deadlineMs)
        throw new DscError('PARAMS_UNREACHABLE', `${call.url} does not answer: ${String(cause)}`, { cause })
    }
    await new Promise((settle) => setTimeout(settle, PAUSE_MS))
  }
}

function callOnce(call: Call): Promise<{ status: number; bytes: Buffer }> {
  const { body, agent, signal } = call
  return new Promise((settle, fail) => {
    const length = body?.reduce((sum, part) => sum + part.length, 0)
    const request = httpRequest(
      new URL(call.path, call.url),
      {
        method: body ? 'POST' : 'GET',
        agent,
        ...(signal ? { signal } : {}),
        headers: {
          ...(length === undefined ? {} : { 'content-length': length }),
          ...(call.token === undefined ? {} : { authorization: `Bearer ${call.token}` }),
        },
      },
      (response) => {
        const size = Number(response.headers['content-length'] ?? Number.NaN)
        if (response.statusCode === 200 && call.receive) {
          call.receive(response).then(
            () => settle({ status: 200, bytes: Buffer.alloc(0) }),
            (error) => {
              response.destroy()
              fail(error)
            },
          )
          return
        }
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.once('error', fail)
        response.once('end', () => {
          const bytes = Buffer.concat(parts)
          if (bytes.length < size) fail(new Error('the answer was cut off'))
          else settle({ status: response.statusCode ?? 0, bytes })
        })
      },
    )
    request.once('error', fail)
    for (const part of body ?? []) request.write(part)
    request.end()
  })
}
