import type { Codec } from '../half/codec.js'
import { formatCount } from '../model/format-count.js'
import { connectLinks, type Mode, type OpenLinks, openDataListener } from './connect-links.js'
import { PeerLost, type Place } from './failures.js'
import { joinRendezvous, type RendezvousClient, type Suspect, type Welcome } from './rendezvous/client.js'
import type { JoinMessage } from './rendezvous/messages.js'

const HEARTBEAT_MS = 1000
/** How long a broken connection waits for the rendezvous to say what broke, before it names its own neighbour. */
const VERDICT_MS = 5000

/** Where this rank is and whose data it waits for. */
export interface Progress extends Place {
  readonly isInStep: boolean
  readonly waiting: { readonly forRank: number; readonly sinceMs: number } | undefined
}

/** A rank's place among the others: its connections, and the first failure that ends them all. */
export interface Membership {
  readonly welcome: Welcome
  readonly links: OpenLinks
  /** Throws the failure if there was one. */
  readonly check: () => void
  /** Ends the membership for a reason of this rank's own, and tells the others. */
  readonly abort: (error: Error) => void
  /** Resolves when all ranks are ready to commit `step`, rejects if one is lost first: the same on every rank. */
  readonly agree: (step: number) => Promise<void>
  /** Call when a step begins: a rank that has left is missed from now on. */
  readonly stepBegins: () => void
  readonly close: (committedSteps: number) => void
}

/** Joins, connects, and watches until closed. `progress` is asked whenever the rendezvous should know. */
export async function openMembership(options: {
  readonly rendezvous: { readonly host: string; readonly port: number }
  readonly join: Omit<JoinMessage, 'kind' | 'version' | 'port'>
  readonly mode: Mode
  readonly codec: Codec
  readonly progress: () => Progress
  readonly onSuspect: (suspect: Suspect) => void
  readonly signal: AbortSignal | undefined
}): Promise<Membership> {
  const { rendezvous, join, mode, codec, progress, onSuspect, signal } = options
  const failed = new AbortController()
  const left = new Map<number, { readonly host: string; readonly step: number }>()
  let failure: Error | undefined
  let isClosed = false
  let client: RendezvousClient | undefined
  let links: OpenLinks | undefined
  let onCommit = (_step: number) => {}

  const place = (): Place => {
    const { step, bucket, phase } = progress()
    return { step, bucket, phase }
  }
  const fail = (error: Error) => {
    if (failure !== undefined || isClosed) return
    failure = error
    failed.abort(error)
    links?.fail(error)
    links?.close()
  }
  const missLeft = () => {
    if (!progress().isInStep) return
    for (const [rank, { host, step }] of left) {
      if (step > progress().step) continue
      const last = { step, bucket: undefined, phase: undefined }
      fail(new PeerLost({ rank, host, reason: `it left after ${formatCount(step, 'step')}`, place: last }))
    }
  }
  const onDown = (rank: number) => {
    const isExpected = () => isClosed || failure !== undefined || left.has(rank)
    if (isExpected()) return
    client?.send({ kind: 'unreachable', rank, ...place() })
    setTimeout(() => {
      if (isExpected()) return
      const host = client?.welcome.peers[rank]?.host ?? '?'
      fail(new PeerLost({ rank, host, place: place(), reason: 'the connection to it broke' }))
    }, VERDICT_MS).unref()
  }
  const listener = await openDataListener(join.host)
  try {
    client = await joinRendezvous(
      rendezvous,
      { ...join, port: listener.port },
      {
        onFailure: fail,
        onCommit: (step) => onCommit(step),
        onSuspect,
        onLeft(rank, host, step) {
          left.set(rank, { host, step })
          missLeft()
        },
      },
      signal,
    )
    links = await connectLinks({
      welcome: client.welcome,
      listener,
      codec,
      mode,
      onDown,
      signal: failed.signal,
    })
    if (failure !== undefined) throw failure
  } catch (error) {
    isClosed = true
    links?.close()
    listener.close()
    client?.destroy()
    throw error
  }
  const [ownClient, ownLinks] = [client, links]
  const beat = () => {
    const { waiting } = progress()
    const waitingMs = waiting && performance.now() - waiting.sinceMs
    ownClient.send({ kind: 'beat', ...place(), waitingFor: waiting?.forRank, waitingMs })
  }
  const timer = setInterval(beat, HEARTBEAT_MS)
  timer.unref()
  return {
    welcome: ownClient.welcome,
    links: ownLinks,
    check() {
      if (failure !== undefined) throw failure
    },
    abort(error) {
      if (failure === undefined) ownClient.send({ kind: 'abort', message: error.message })
      fail(error)
    },
    async agree(step) {
      const agreed = Promise.withResolvers<void>()
      onCommit = (committed) => {
        if (committed >= step) agreed.resolve()
      }
      const onFail = () => agreed.reject(failed.signal.reason)
      failed.signal.addEventListener('abort', onFail, { once: true })
      ownClient.send({ kind: 'ready', step })
      await agreed.promise.finally(() => failed.signal.removeEventListener('abort', onFail))
    },
    stepBegins() {
      missLeft()
      beat()
    },
    close(committedSteps) {
      if (isClosed) return
      isClosed = true
      clearInterval(timer)
      if (failure === undefined) ownClient.leave(committedSteps)
      else ownClient.destroy()
      ownLinks.close()
      listener.close()
    },
  }
}
