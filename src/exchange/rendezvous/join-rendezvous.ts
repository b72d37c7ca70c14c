import { connect, type Socket } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import { listenForLines } from '../../frames/lines.js'
import { ExchangeMismatch, LinkLost, PeerLost } from '../failures.js'
import {
  type JoinMessage,
  type RankMessage,
  RENDEZVOUS_VERSION,
  type RendezvousMessage,
  rankMessageSchema,
  rendezvousMessageSchema,
  sendMessage,
} from './messages.js'

/** The list of all ranks, and the number of this one. */
export type Welcome = Extract<RendezvousMessage, { kind: 'welcome' }>
/** A rank that is silent or makes no progress. */
export type Suspect = Extract<RendezvousMessage, { kind: 'suspect' }>

/** Callbacks of a rank. Called until the client is closed; `onFailure` at most once. */
interface RendezvousEvents {
  readonly onFailure: (error: Error) => void
  readonly onCommit: (step: number) => void
  readonly onSuspect: (suspect: Suspect) => void
  readonly onTurnedAway: (problem: string) => void
  readonly onLeft: (rank: number, host: string, step: number) => void
}

/** Joins a job and waits until all its ranks are there. Rejects with ExchangeMismatch if they do not fit together. */
export async function joinRendezvous(options: {
  readonly at: { readonly host: string; readonly port: number }
  readonly join: Omit<JoinMessage, 'kind' | 'version'>
  readonly events: RendezvousEvents
  readonly signal: AbortSignal | undefined
}): Promise<RendezvousClient> {
  const { at, join, events, signal } = options
  const where = `the rendezvous at ${at.host}:${at.port}`
  const message = parseJoin({ kind: 'join', version: RENDEZVOUS_VERSION, ...join })
  const socket = await dial(at, where)
  const client = new RendezvousClient(socket, events)
  const onAbort = () => client.fail(new DscError('INTERRUPTED', `interrupted while waiting at ${where}`))
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) onAbort()
  socket.on('error', () => {})
  socket.on('close', () => {
    signal?.removeEventListener('abort', onAbort)
    const hint = 'start it again with `dsc exchange serve` and rejoin'
    client.fail(new DscError('PEER_LOST', `${where} is gone`, { hint }))
  })
  client.send(message)
  await client.welcomed
  return client
}

/** A rank's connection to the rendezvous. */
export class RendezvousClient {
  readonly #socket: Socket
  readonly #events: RendezvousEvents
  readonly #welcomed = Promise.withResolvers<Welcome>()
  #welcome: Welcome | undefined
  #isClosed = false

  constructor(socket: Socket, events: RendezvousEvents) {
    this.#socket = socket
    this.#events = events
    listenForLines(socket, {
      parse: (raw) => rendezvousMessageSchema.parse(raw),
      onMessage: (message) => void this.#handle(message),
    })
  }

  /** Resolves when all ranks are there. */
  get welcomed(): Promise<Welcome> {
    return this.#welcomed.promise
  }

  /** The list of all ranks; not before `welcomed`. */
  get welcome(): Welcome {
    return this.#welcome!
  }

  send(message: RankMessage): void {
    sendMessage(this.#socket, message)
  }

  /** Says goodbye, so that the end of the connection does not count as a death. */
  leave(step: number): void {
    this.#isClosed = true
    this.send({ kind: 'leave', step })
    this.#socket.end()
  }

  /** Closes the connection; messages sent before still go out. */
  destroy(): void {
    this.#isClosed = true
    this.#socket.destroySoon()
  }

  /** Ends the wait, or reports the end of the job: the first reason counts. */
  fail(error: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#welcome) this.#events.onFailure(error)
    else {
      this.#socket.destroy()
      this.#welcomed.reject(error)
    }
  }

  #handle(message: RendezvousMessage): void {
    switch (message.kind) {
      case 'welcome':
        this.#welcome = message
        this.#welcomed.resolve(message)
        break
      case 'turnedAway':
        this.#events.onTurnedAway(message.message)
        break
      case 'commit':
        this.#events.onCommit(message.step)
        break
      case 'suspect':
        this.#events.onSuspect(message)
        break
      case 'left':
        this.#events.onLeft(message.rank, message.host, message.step)
        break
      default:
        this.fail(toFailure(message))
    }
  }
}

/** Turns a message that ends a rank's membership into an error. */
function toFailure(
  message: Extract<RendezvousMessage, { kind: 'refused' | 'aborted' | 'lost' | 'linkLost' }>,
): DscError {
  switch (message.kind) {
    case 'refused':
      if (message.reason === 'mismatch') return new ExchangeMismatch(message.message)
      return new DscError('USAGE', message.message, { hint: 'give every rank the token of the rendezvous' })
    case 'aborted':
      return new ExchangeMismatch(message.message)
    case 'lost': {
      const { rank, host, reason, step, bucket, phase } = message
      return new PeerLost({ rank, host, place: { step, bucket, phase }, reason })
    }
    case 'linkLost': {
      const { ranks, hosts, step, bucket, phase } = message
      return new LinkLost({ ranks, hosts, place: { step, bucket, phase } })
    }
  }
}

/**
 * Refuses by name any field that would make the rendezvous reject the whole message, mostly a rank that is not a
 * number.
 */
function parseJoin(join: JoinMessage): JoinMessage {
  const parsed = rankMessageSchema.safeParse(join)
  if (parsed.success) return join
  const [issue] = parsed.error.issues
  throw new DscError('USAGE', `cannot join: ${issue?.path.join('.')}: ${issue?.message}`)
}

async function dial(at: { readonly host: string; readonly port: number }, where: string): Promise<Socket> {
  const socket = connect({ ...at, noDelay: true })
  return await new Promise((resolve, reject) => {
    socket.once('connect', () => {
      socket.removeAllListeners('error')
      resolve(socket)
    })
    socket.once('error', (cause) => {
      const hint = 'start it with `dsc exchange serve`, or check host and port'
      reject(new DscError('PEER_LOST', `${where} does not answer: ${cause.message}`, { hint, cause }))
    })
  })
}
