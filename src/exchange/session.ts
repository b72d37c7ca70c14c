import { setImmediate as yieldToSockets } from 'node:timers/promises'
import { DscError } from '../failure/dsc-error.js'
import { bucketBytes, createBucketBuffer } from './bucket-buffer.js'
import { connectLinks, type Mode, type OpenLinks, openDataListener } from './connect-links.js'
import { type BucketResult, exchangeBucket } from './exchange-bucket.js'
import { PeerLost } from './failures.js'
import { MEMORY_LIMIT_BYTES, openCodec } from './half/codec.js'
import { SEGMENT_BYTES } from './plan/layout.js'
import { FIRST_SCALE, type ScaleState } from './plan/scale.js'
import type { PlanFile } from './plan-files.js'
import { joinRendezvous, type RendezvousClient, type Suspect } from './rendezvous/client.js'

const HEARTBEAT_MS = 1000
/** How long a broken connection waits for the rendezvous to say who died, before it names its own neighbour. */
const VERDICT_MS = 500

export interface JoinOptions {
  readonly rendezvous: { readonly host: string; readonly port: number }
  readonly plan: PlanFile
  /** Ranks of one job meet each other only. Default `default`. */
  readonly job?: string
  /** Wanted rank; by default in order of arrival. */
  readonly rank?: number
  /** Address at which other ranks reach this one. Default 127.0.0.1. */
  readonly listenHost?: string
  readonly token?: string
  /** Default `ring`; `direct` sums in fp32 and takes two rounds, with a connection to every rank: for up to 8. */
  readonly mode?: Mode
  /** Steps this rank has committed in an earlier epoch. Default 0. */
  readonly committedSteps?: number
  /** Scales of an earlier epoch or a checkpoint, as `session.scales()` gave them. */
  readonly scales?: readonly ScaleState[]
  readonly onSuspect?: (suspect: Suspect) => void
  readonly signal?: AbortSignal
}

/** One exchange of all gradients. */
export interface ExchangeStep {
  /**
   * Takes one gradient; in any order, but the plan's order overlaps best. A bucket whose last gradient comes is sent
   * at once. `gradient` is copied, and written only by `commit`. Resolves after sockets had a chance to move.
   */
  readonly add: (name: string, gradient: Float32Array) => Promise<void>
  /** Waits for all buckets on all ranks, then writes the means over the gradients that were added: all or none. */
  readonly commit: () => Promise<StepReport>
}

/** What a step did. */
export interface StepReport {
  readonly step: number
  readonly buckets: readonly Pick<BucketResult, 'wireType' | 'exponent' | 'outcome'>[]
}

/** A rank's membership in one epoch of a job. */
export interface ExchangeSession {
  readonly rank: number
  readonly ranks: number
  readonly epoch: number
  /** Steps committed by every rank of this epoch's group when it formed, by rank. */
  readonly joinedSteps: readonly number[]
  readonly committedSteps: () => number
  readonly scales: () => readonly ScaleState[]
  readonly beginStep: () => ExchangeStep
  readonly close: () => Promise<void>
}

/** Joins a job: waits until all ranks are there, connects to them, and reserves the fusion buffers. */
export async function joinExchange(options: JoinOptions): Promise<ExchangeSession> {
  const { plan, mode = 'ring', listenHost = '127.0.0.1', committedSteps = 0, signal } = options
  const sizes = plan.buckets.map(({ tensors }) => tensors.reduce((sum, { elements }) => sum + elements, 0))
  const slots = (mode === 'ring' ? 1 : plan.ranks - 1) * 4 * SEGMENT_BYTES
  const bytes = sizes.reduce((sum, elements) => sum + bucketBytes(elements, plan.ranks), 64 + slots)
  if (bytes > MEMORY_LIMIT_BYTES) {
    throw new DscError(
      'USAGE',
      `the fusion buffers need ${bytes} bytes, one process can hold ${MEMORY_LIMIT_BYTES}`,
      {
        hint: 'split the model over more exchanges',
      },
    )
  }
  const codec = openCodec(bytes)
  const buffers = sizes.map((elements) => createBucketBuffer(codec, elements, plan.ranks))
  const places = new Map(
    plan.buckets.flatMap(({ tensors }, bucket) => {
      let offset = 0
      return tensors.map(({ name, elements }) => {
        offset += elements
        return [name, { bucket, offset: offset - elements, elements }] as const
      })
    }),
  )

  let step = committedSteps
  let scales = options.scales ?? plan.buckets.map(() => FIRST_SCALE)
  let failure: Error | undefined
  let waiting:
    | { readonly forRank: number; readonly sinceMs: number; readonly phase: string | undefined }
    | undefined
  let activeBucket: number | undefined
  let isInStep = false
  let isClosed = false
  let client: RendezvousClient | undefined
  let links: OpenLinks | undefined
  let onCommit = (_: number) => {}
  const failed = new AbortController()
  const left = new Map<number, { readonly host: string; readonly step: number }>()

  const fail = (error: Error) => {
    if (failure !== undefined || isClosed) return
    failure = error
    failed.abort(error)
    links?.fail(error)
    links?.close()
  }
  const checkLeft = () => {
    if (!isInStep) return
    for (const [rank, { host, step: last }] of left) {
      if (last <= step) {
        const reason = `it left after ${last} steps`
        fail(new PeerLost({ rank, host, reason, place: { step: last, bucket: undefined, phase: undefined } }))
      }
    }
  }
  const place = () => ({ step, bucket: activeBucket, phase: waiting?.phase })
  const onDown = (rank: number) => {
    if (isClosed || failure !== undefined) return
    setTimeout(() => {
      if (isClosed || failure !== undefined || left.has(rank)) return
      client?.send({ kind: 'unreachable', rank, ...place() })
      const host = client?.welcome.peers[rank]?.host ?? '?'
      fail(new PeerLost({ rank, host, place: place(), reason: 'the connection to it broke' }))
    }, VERDICT_MS)
  }

  const listener = await openDataListener(listenHost)
  try {
    client = await joinRendezvous(
      options.rendezvous,
      {
        job: options.job ?? 'default',
        ranks: plan.ranks,
        wire: plan.wire,
        planHash: `${plan.hash}/${mode}`,
        host: listenHost,
        port: listener.port,
        committedSteps,
        rank: options.rank,
        token: options.token,
      },
      {
        onFailure: fail,
        onCommit: (committed) => onCommit(committed),
        onSuspect: (suspect) => options.onSuspect?.(suspect),
        onLeft(rank, host, last) {
          left.set(rank, { host, step: last })
          checkLeft()
        },
      },
      signal,
    )
    const { welcome } = client
    links = await connectLinks({ welcome, listener, codec, mode, onDown, signal: failed.signal })
    if (failure !== undefined) throw failure
  } catch (error) {
    listener.close()
    client?.destroy()
    throw error
  }
  const { welcome } = client
  const ownLinks = links
  const ownClient = client
  const beat = () =>
    ownClient.send({
      kind: 'beat',
      ...place(),
      waitingFor: waiting?.forRank,
      waitingMs: waiting && performance.now() - waiting.sinceMs,
    })
  const timer = setInterval(beat, HEARTBEAT_MS)
  timer.unref()

  const beginStep = (): ExchangeStep => {
    if (failure !== undefined) throw failure
    isInStep = true
    checkLeft()
    const added = new Map<string, Float32Array>()
    const missing = plan.buckets.map(({ tensors }) => tensors.length)
    const results: BucketResult[] = []
    let channel = Promise.resolve()
    let launched = 0
    const launch = (bucket: number) => {
      channel = channel.then(async () => {
        if (failure !== undefined) throw failure
        activeBucket = bucket
        results[bucket] = await exchangeBucket(ownLinks, buffers[bucket]!, {
          mode,
          wire: plan.wire,
          tensors: plan.buckets[bucket]!.tensors.length,
          scale: scales[bucket]!,
          place: { epoch: welcome.epoch, step, bucket },
          onWaiting(forRank, phase) {
            waiting = forRank === undefined ? undefined : { forRank, phase, sinceMs: performance.now() }
          },
        })
      })
      channel.catch((error: Error) => {
        waiting = undefined
        if (failure === undefined) ownClient.send({ kind: 'abort', message: error.message })
        fail(error)
      })
    }
    return {
      async add(name, gradient) {
        if (failure !== undefined) throw failure
        const where = places.get(name)
        if (!where || where.elements !== gradient.length || added.has(name)) {
          const problem = !where
            ? 'is not in the plan'
            : added.has(name)
              ? 'was added twice'
              : `has ${gradient.length} values, the plan says ${where.elements}`
          throw new DscError('EXCHANGE_MISMATCH', `gradient ${name} ${problem}`, { hint: 'make a new plan' })
        }
        added.set(name, gradient)
        buffers[where.bucket]!.local.set(gradient, where.offset)
        missing[where.bucket]!--
        // In the plan's order on every rank, whatever the order of completion: ranks must agree on it.
        while (launched < missing.length && missing[launched] === 0) launch(launched++)
        await yieldToSockets()
      },
      async commit() {
        if (launched < buffers.length && failure === undefined) {
          const absent = [...places.keys()].find((name) => !added.has(name))
          throw new DscError('EXCHANGE_MISMATCH', `gradient ${absent} is missing in step ${step}`, {
            hint: 'add every gradient of the plan; zeros where a parameter was not used',
          })
        }
        await channel.catch(() => {})
        if (failure !== undefined) throw failure
        await agree(step + 1)
        for (const [bucket, result] of results.entries()) buffers[bucket]!.decode(result)
        for (const [name, gradient] of added) {
          const { bucket, offset, elements } = places.get(name)!
          gradient.set(buffers[bucket]!.local.subarray(offset, offset + elements))
        }
        scales = results.map(({ nextScale }) => nextScale)
        isInStep = false
        activeBucket = undefined
        step++
        const report = results.map(({ wireType, exponent, outcome }) => ({ wireType, exponent, outcome }))
        return { step, buckets: report }
      },
    }
  }
  /** All ranks commit a step or none does: the rendezvous says so once it has heard from every rank. */
  const agree = async (next: number) => {
    const agreed = Promise.withResolvers<void>()
    onCommit = (committed) => {
      if (committed >= next) agreed.resolve()
    }
    const onFail = () => agreed.reject(failed.signal.reason)
    failed.signal.addEventListener('abort', onFail, { once: true })
    ownClient.send({ kind: 'ready', step: next })
    try {
      await agreed.promise
    } finally {
      failed.signal.removeEventListener('abort', onFail)
    }
  }
  return {
    rank: welcome.rank,
    ranks: plan.ranks,
    epoch: welcome.epoch,
    joinedSteps: welcome.peers.map((peer) => peer.committedSteps),
    committedSteps: () => step,
    scales: () => scales,
    beginStep,
    async close() {
      if (isClosed) return
      isClosed = true
      clearInterval(timer)
      if (failure === undefined) ownClient.leave(step)
      else ownClient.destroy()
      ownLinks.close()
      listener.close()
    },
  }
}
