import { DscError } from '../failure/dsc-error.js'
import type { Codec } from '../half/codec.js'
import { formatCount } from '../model/format-count.js'
import {
  connectLinks,
  type DataListener,
  type Mode,
  type OpenLinks,
  openDataListener,
} from './connect-links.js'
import { ExchangeMismatch, PeerLost, type Place } from './failures.js'
import { type HostMemory, openHostMemory } from './host/host-memory.js'
import { findLevels, type Levels } from './plan/find-levels.js'
import {
  joinRendezvous,
  type RendezvousClient,
  type Suspect,
  type Welcome,
} from './rendezvous/join-rendezvous.js'
import type { JoinMessage } from './rendezvous/messages.js'

const HEARTBEAT_MS = 1000
/**
 * How long a rank with a broken connection waits for the rendezvous to find the cause, before it names its own
 * neighbor, in ms.
 */
const VERDICT_MS = 5000

/** This rank's place in the exchange and the rank it waits for. */
export interface Progress extends Place {
  readonly isInStep: boolean
  readonly waiting: { readonly forRank: number; readonly sinceMs: number } | undefined
}

/** Options of a membership. `progress` is called whenever the rendezvous should know where this rank is. */
interface MembershipOptions {
  readonly rendezvous: { readonly host: string; readonly port: number }
  readonly join: Omit<JoinMessage, 'kind' | 'version' | 'port' | 'memory'>
  readonly mode: Mode
  readonly levels: 1 | 2
  /** Called once, when all ranks are known. */
  readonly openCodec: (levels: Levels) => Codec
  readonly progress: () => Progress
  readonly onSuspect: (suspect: Suspect) => void
  readonly onTurnedAway: (problem: string) => void
  readonly signal: AbortSignal | undefined
}

/** Joins, connects, and watches until closed. */
export async function openMembership(options: MembershipOptions): Promise<Membership> {
  const listener = await openDataListener(options.join.host)
  const membership = new Membership(options, listener)
  await membership.open()
  return membership
}

/** A rank's place among the others: its connections, and the first failure that ends them all. */
export class Membership {
  readonly #options: MembershipOptions
  readonly #listener: DataListener
  readonly #failed = new AbortController()
  /** Ranks that said goodbye, and their step count at that time. */
  readonly #left = new Map<number, { readonly host: string; readonly step: number }>()
  #failure: Error | undefined
  #isClosed = false
  #client: RendezvousClient | undefined
  #links: OpenLinks | undefined
  #memory: HostMemory | undefined
  #heartbeat: NodeJS.Timeout | undefined
  /** While ranks connect: the rank that has not connected to this one yet. */
  #awaited: Progress['waiting']
  #onCommit = (_step: number) => {}

  /** `listener` is closed with the membership. Call `open` before anything else. */
  constructor(options: MembershipOptions, listener: DataListener) {
    this.#options = options
    this.#listener = listener
  }

  /** Meets the other ranks and connects to them. */
  async open(): Promise<void> {
    const { rendezvous, join, mode, levels, openCodec, signal } = this.#options
    try {
      this.#memory = levels === 2 ? openHostMemory(join.hostKey) : undefined
      const { hostKey, path } = this.#memory ?? {}
      this.#client = await joinRendezvous({
        at: rendezvous,
        join: { ...join, port: this.#listener.port, hostKey, memory: path },
        events: {
          onFailure: (error) => this.#fail(error),
          onCommit: (step) => this.#onCommit(step),
          onSuspect: this.#options.onSuspect,
          onTurnedAway: this.#options.onTurnedAway,
          onLeft: (rank, host, step) => {
            this.#left.set(rank, { host, step })
            this.#missLeft()
          },
        },
        signal,
      })
      const { welcome } = this.#client
      this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS)
      this.#heartbeat.unref()
      const found = findLevels(welcome.peers, welcome.rank)
      this.#links = await connectLinks({
        welcome,
        levels: found,
        listener: this.#listener,
        codec: openCodec(found),
        memory: this.#memory,
        mode,
        onDown: (rank) => this.#reportDown(rank),
        onAwaited: (rank) => {
          this.#awaited = rank === undefined ? undefined : { forRank: rank, sinceMs: performance.now() }
        },
        signal: this.#failed.signal,
      })
      this.check()
    } catch (error) {
      if (error instanceof ExchangeMismatch && this.#failure === undefined)
        this.#client?.send({ kind: 'abort', message: error.message })
      this.#isClosed = true
      clearInterval(this.#heartbeat)
      this.#closeLinks()
      this.#client?.destroy()
      throw error
    }
  }

  get welcome(): Welcome {
    return this.#client!.welcome
  }

  get links(): OpenLinks {
    return this.#links!
  }

  /** Throws the failure if there was one. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Ends the membership for a local reason, and tells the others. */
  abort(error: Error): void {
    if (this.#failure === undefined) this.#client?.send({ kind: 'abort', message: error.message })
    this.#fail(error)
  }

  /** Resolves when all ranks are ready to commit `step`, rejects if one is lost first: the same on every rank. */
  async agree(step: number): Promise<void> {
    this.check()
    const { signal } = this.#failed
    const agreed = Promise.withResolvers<void>()
    this.#onCommit = (committed) => {
      if (committed >= step) agreed.resolve()
    }
    const onFail = () => agreed.reject(signal.reason)
    signal.addEventListener('abort', onFail, { once: true })
    this.#client?.send({ kind: 'ready', step })
    await agreed.promise.finally(() => signal.removeEventListener('abort', onFail))
  }

  /** Call when a step begins: from now on a rank that has left counts as missing. */
  beginStep(): void {
    this.#missLeft()
    this.#beat()
  }

  close(committedSteps: number): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    if (this.#failure === undefined) this.#client?.leave(committedSteps)
    else this.#client?.destroy()
    // Otherwise a caller that waits for others, or begins a later step, would wait for ever.
    this.#failure ??= new DscError('USAGE', 'this session of the exchange is closed', { hint: 'join again' })
    this.#failed.abort(this.#failure)
    this.#links?.fail(this.#failure)
    this.#closeLinks()
  }

  #closeLinks(): void {
    this.#links?.close()
    this.#listener.close()
    this.#memory?.close()
    this.#memory = undefined
  }

  get #place(): Place {
    const { step, bucket, phase } = this.#options.progress()
    return { step, bucket, phase: this.#awaited ? 'connecting' : phase }
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined || this.#isClosed) return
    this.#failure = error
    this.#failed.abort(error)
    this.#links?.fail(error)
    this.#links?.close()
  }

  #missLeft(): void {
    const progress = this.#options.progress()
    if (!progress.isInStep) return
    for (const [rank, { host, step }] of this.#left) {
      if (step > progress.step) continue
      const last = { step, bucket: undefined, phase: undefined }
      const reason = `it left after ${formatCount(step, 'step')}`
      this.#fail(new PeerLost({ rank, host, reason, place: last }))
    }
  }

  /** Reports to the rendezvous that the connection to `rank` broke; the rendezvous decides what that means. */
  #reportDown(rank: number): void {
    const isExpected = () => this.#isClosed || this.#failure !== undefined || this.#left.has(rank)
    if (isExpected()) return
    this.#client?.send({ kind: 'unreachable', rank, ...this.#place })
    setTimeout(() => {
      if (isExpected()) return
      const host = this.#client?.welcome.peers[rank]?.host ?? '?'
      this.#fail(new PeerLost({ rank, host, place: this.#place, reason: 'the connection to it broke' }))
    }, VERDICT_MS).unref()
  }

  #beat(): void {
    const waiting = this.#awaited ?? this.#options.progress().waiting
    const waitingMs = waiting && performance.now() - waiting.sinceMs
    this.#client?.send({ kind: 'beat', ...this.#place, waitingFor: waiting?.forRank, waitingMs })
  }
}
