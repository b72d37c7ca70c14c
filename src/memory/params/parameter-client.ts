import { Agent, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { askOnce } from '../../http/ask-once.js'
import { nameDefaultJob } from '../../platform/default-job.js'
import { planPause } from '../../platform/plan-pause.js'
import type { PushExtras } from './central-options.js'
import { encodeHalfPush } from './half-gradient.js'
import { encodeFrame, JOB_HEADER } from './message.js'
import { type Mirror, openMirror } from './mirror.js'
import type { OptimizerChange } from './plan/optimizer-settings.js'
import { layOutParameters, type ParameterLayout, type ParameterSlot } from './plan/parameter-layout.js'
import { type PullNews, receivePull } from './receive-pull.js'

/** Outcome of a push. `refused`: pull and compute the gradient again; nothing was applied. */
export type PushResult =
  | { readonly state: 'applied' | 'waiting' | 'duplicate'; readonly version: number }
  | { readonly state: 'refused'; readonly reason: 'stale' | 'ahead' | 'epoch'; readonly message: string }

/** Retries of a server that does not answer, until a call fails; all workers wait for one that restarts. */
const PACE = { firstMs: 100, longestMs: 500, patienceMs: 30_000 }
/** A server sends no byte while it waits for other ranks, 20 s at most, or computes an update. */
const SILENCE_MS = 120_000

/** Address of the central node, and the parameters that this worker trains. */
export interface ParameterClientOptions {
  readonly url: string
  readonly rank: number
  readonly slots: readonly ParameterSlot[]
  /** Initial parameters in the layout of `slots`. */
  readonly values: Float32Array
  readonly token?: string | undefined
  /** Must match the server's. Default: `user-` and the number of this process's user. */
  readonly job?: string | undefined
  /** Default 30,000. */
  readonly patienceMs?: number | undefined
  /** Encoding of gradients: float32 (default), or scaled halves, which are half the bytes and rounded to 11 bits. */
  readonly pushType?: 'f32' | 'f16' | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Opens a worker's client. The first worker's `values` become the parameters; the others receive the server's with
 * their first pull. Waits for a server that restarts.
 */
export async function openParameterClient(options: ParameterClientOptions): Promise<ParameterClient> {
  const client = new ParameterClient(options)
  await client.begin(options.values)
  return client
}

/** A worker's connection to the central node, and its mirror of the parameters. */
export class ParameterClient {
  readonly layout: ParameterLayout
  readonly mirror: Mirror
  readonly #options: ParameterClientOptions
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 2 })
  #epoch = -1
  #lastStep = -1
  /** Versions in the halves, newest first; the inactive half's version decides what it needs. */
  #held: readonly { readonly epoch: number; readonly version: number }[] = []

  /** Use `openParameterClient`, which also begins. */
  constructor(options: ParameterClientOptions) {
    if (!URL.canParse(options.url) || new URL(options.url).protocol !== 'http:')
      throw new DscError(
        'USAGE',
        `the central node is said to be at ${options.url}, expected http://host:port`,
      )
    this.#options = options
    this.layout = layOutParameters(options.slots)
    this.mirror = openMirror(this.layout.length)
  }

  /** Life of the server that this client last pulled from. */
  get epoch(): number {
    return this.#epoch
  }

  /** This rank's last step applied there. */
  get lastStep(): number {
    return this.#lastStep
  }

  /** Tells the server which parameters are trained: the first worker's `values` become the parameters. */
  async begin(values: Float32Array): Promise<void> {
    const { rank, slots, signal } = this.#options
    await this.#call('/v1/begin', { body: encodeFrame({ rank, slots }, values), signal })
  }

  /**
   * Waits for a version of at least `atLeast` (and, in ssp mode, permission to begin `step`) and pulls it into the
   * mirror. Returns the version received: a lower one after a restart of the server, when pushes of its earlier life
   * are gone.
   */
  async pull({
    atLeast = 0,
    step = 0,
    signal,
  }: {
    readonly atLeast?: number
    readonly step?: number
    readonly signal?: AbortSignal | undefined
  } = {}): Promise<number> {
    for (;;) {
      const inactive = this.#held[1]
      const query = new URLSearchParams({
        have: String(inactive?.version ?? -1),
        epoch: String(inactive?.epoch ?? -1),
        sees: String(this.#epoch),
        atLeast: String(atLeast),
        step: String(step),
        rank: String(this.#options.rank),
        halves: '1',
      })
      let news: PullNews | undefined
      const receive = async (response: IncomingMessage) => {
        const older = this.#held
        this.#held = older.slice(0, 1) // until it is whole, the inactive half has no version
        news = await receivePull(response, this.mirror, this.layout)
        this.#held = older
      }
      await this.#call(`/v1/pull?${query}`, { signal, receive })
      if (!news) continue
      this.#held = [{ epoch: news.epoch, version: news.version }, ...this.#held.slice(0, 1)]
      this.#epoch = news.epoch
      this.#lastStep = news.lastStep
      return news.version
    }
  }

  /**
   * Pushes the gradient of `step`, in the layout of the parameters, with buffers' values in their places.
   * `learningRate` is for this update only. `absent` are the indices of slots without a gradient: they stay unchanged.
   */
  async push(
    gradient: Float32Array,
    step: number,
    { signal, ...extras }: PushExtras & { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<PushResult> {
    const key = { rank: this.#options.rank, epoch: this.#epoch, step, baseVersion: this.mirror.version }
    const header = { ...key, ...extras }
    const { status, bytes } = await this.#call('/v1/push', {
      body: this.#encodePush(header, gradient),
      signal,
    })
    const body = JSON.parse(bytes.toString('utf8')) as PushBody
    if (status === 200) return { state: body.state!, version: body.version! }
    return { state: 'refused', reason: body.error!.reason, message: body.error!.message }
  }

  /** Changes the central node's optimizer settings, from its next update on, for all workers. */
  async change(change: OptimizerChange): Promise<void> {
    await this.#call('/v1/optimizer', { body: [Buffer.from(JSON.stringify(change))] })
  }

  close(): void {
    this.#agent.destroy()
  }

  #encodePush(header: object, gradient: Float32Array): Buffer[] {
    if (this.#options.pushType !== 'f16') return encodeFrame(header, gradient)
    const { exponents, payload } = encodeHalfPush(this.layout, gradient)
    return encodeFrame({ ...header, dtype: 'f16', exponents }, payload)
  }

  #call(path: string, call: Pick<Call, 'body' | 'signal' | 'receive'>): ReturnType<typeof callPatiently> {
    const { url, token, job, patienceMs } = this.#options
    return callPatiently({ url, token, job, patienceMs, agent: this.#agent, path, ...call })
  }
}

interface PushBody {
  readonly state?: 'applied' | 'waiting' | 'duplicate'
  readonly version?: number | undefined
  readonly error?: { readonly reason: 'stale' | 'ahead' | 'epoch'; readonly message: string }
}

interface Call extends Pick<ParameterClientOptions, 'url' | 'token' | 'job' | 'patienceMs' | 'signal'> {
  readonly path: string
  readonly body?: Buffer[] | undefined
  readonly agent: Agent
  /** Reads the body of a 200 itself; if it rejects, the call is repeated. */
  readonly receive?: ((response: IncomingMessage) => Promise<void>) | undefined
}

/** Repeats the call until the server answers; a final refusal becomes a DscError. */
async function callPatiently(call: Call): Promise<{ status: number; bytes: Buffer }> {
  let failedMs: number | undefined // the first failure, not the call: a pull may have waited for other ranks before
  for (let attempts = 1; ; attempts++) {
    try {
      const answer = await callOnce(call)
      if (answer.status === 200 || answer.status === 202) return answer
      const { error } = JSON.parse(answer.bytes.toString('utf8')) as {
        error: { reason: string; message: string }
      }
      if (['stale', 'ahead', 'epoch'].includes(error.reason)) return answer
      if (error.message === 'the server is stopping') throw new Error(error.message)
      throw new DscError('PARAMS_REFUSED', error.message)
    } catch (cause) {
      const isFinal = isDscError(cause) && !cause.isRetryable
      if (isFinal || call.signal?.aborted) throw cause
      failedMs ??= performance.now()
      const pace = { ...PACE, patienceMs: call.patienceMs ?? PACE.patienceMs }
      const elapsedMs = performance.now() - failedMs
      const pauseMs = planPause({ attempts, elapsedMs, random: Math.random() }, pace)
      if (pauseMs === undefined)
        throw new DscError('PARAMS_UNREACHABLE', `${call.url} does not answer: ${String(cause)}`, { cause })
      await sleep(pauseMs)
    }
  }
}

async function callOnce(call: Call): Promise<{ status: number; bytes: Buffer }> {
  const { body, agent, signal, token, receive } = call
  const answer = await askOnce(new URL(call.path, call.url).href, {
    method: body ? 'POST' : 'GET',
    headers: { [JOB_HEADER]: call.job ?? nameDefaultJob() },
    ...{ body, token, agent, signal },
    connectTimeoutMs: PACE.patienceMs,
    silenceMs: SILENCE_MS,
  })
  const status = answer.statusCode ?? 0
  try {
    if (status !== 200 || !receive) return { status, bytes: await buffer(answer) }
    await receive(answer)
    return { status, bytes: Buffer.alloc(0) }
  } catch (error) {
    answer.destroy()
    throw error
  }
}
