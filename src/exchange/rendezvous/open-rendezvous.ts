import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import { listenForLines } from '../../frames/lines.js'
import { isSecret } from '../../frames/secret.js'
import { isLoopback } from '../../model/host-port.js'
import { DEFAULT_PATIENCE, type Patience } from '../plan/suspect.js'
import { type ArrivedRank, Group } from './group.js'
import {
  type JoinMessage,
  type RankMessage,
  RENDEZVOUS_VERSION,
  rankMessageSchema,
  sendMessage,
} from './messages.js'
import { answerProbes } from './probe-echo.js'

const HEALTH_INTERVAL_MS = 250

/** Where ranks meet, find each other, and learn which ranks are gone. */
export interface Rendezvous {
  readonly host: string
  readonly port: number
  readonly close: () => Promise<void>
}

/** How a rendezvous listens and authenticates ranks. */
export interface RendezvousOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Ranks must present it; required beyond loopback. Without a token any process on this machine may join. */
  readonly token?: string | undefined
  /** Default: a warning after 5 s, the end after 30 s. */
  readonly patience?: Patience
  readonly nowMs: () => number
}

/** Starts a rendezvous. It serves any number of jobs, and answers probes of the link. */
export async function openRendezvous(options: RendezvousOptions): Promise<Rendezvous> {
  const { host, port, token } = options
  if (!token && !isLoopback(host)) {
    throw new DscError('USAGE', `${host} can be reached from other machines, but no token is set`, {
      hint: 'dsc exchange serve --token-file <file>',
    })
  }
  const lobby = new Lobby(options)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {}) // the close that follows says all there is to say
    socket.on('close', () => {
      sockets.delete(socket)
      lobby.disconnect(socket)
    })
    listenForLines(socket, {
      parse: (raw) => rankMessageSchema.parse(raw),
      onMessage: (message) => lobby.handle(socket, message),
      onRaw: (rest) => answerProbes(socket, rest),
    })
  })
  await once(server.listen(port, host), 'listening')
  const timer = setInterval(() => lobby.checkHealth(), HEALTH_INTERVAL_MS)
  const address = server.address()
  return {
    host,
    port: typeof address === 'object' && address ? address.port : port,
    async close() {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** The ranks that wait for the rest of their job, and the jobs that have begun. */
class Lobby {
  readonly #options: RendezvousOptions
  readonly #pending = new Map<string, ArrivedRank[]>()
  readonly #epochs = new Map<string, number>()
  readonly #groups = new Map<Socket, Group>()

  constructor(options: RendezvousOptions) {
    this.#options = options
  }

  /** Handles a connection's message; 'raw' hands the connection over to probes. */
  handle(socket: Socket, message: RankMessage): 'raw' | undefined {
    if (!this.#isWelcome(socket, message)) return undefined
    if (message.kind === 'probe') return 'raw'
    if (message.kind === 'join') this.#join(socket, message)
    else this.#groups.get(socket)?.handle(socket, message)
    return undefined
  }

  disconnect(socket: Socket): void {
    this.#groups.get(socket)?.disconnect(socket)
    this.#groups.delete(socket)
    for (const [job, waiting] of this.#pending) {
      this.#pending.set(
        job,
        waiting.filter((member) => member.socket !== socket),
      )
    }
  }

  checkHealth(): void {
    for (const group of new Set(this.#groups.values())) group.checkHealth()
  }

  #isWelcome(socket: Socket, message: RankMessage): boolean {
    if (message.kind !== 'join' && message.kind !== 'probe') return this.#groups.has(socket)
    const { token } = this.#options
    const problem =
      message.version !== RENDEZVOUS_VERSION
        ? `the rendezvous speaks version ${RENDEZVOUS_VERSION}, this rank version ${message.version}`
        : token === undefined || isSecret(message.token ?? '', token)
          ? undefined
          : 'the rendezvous asks for another token'
    if (problem) sendMessage(socket, { kind: 'refused', reason: 'denied', message: problem })
    return problem === undefined
  }

  #join(socket: Socket, join: JoinMessage): void {
    const { job, ranks } = join
    const waiting = this.#pending.get(job) ?? []
    const problem = findJoinMismatch(
      waiting.map((member) => member.join),
      join,
    )
    if (problem !== undefined) {
      // The first to come is right: one line of a stranger must not end the wait of all. They learn of it, and go on
      // waiting.
      sendMessage(socket, { kind: 'refused', reason: 'mismatch', message: problem })
      for (const member of waiting) sendMessage(member.socket, { kind: 'turnedAway', message: problem })
      return
    }
    waiting.push({ socket, join })
    this.#pending.set(job, waiting)
    if (waiting.length < ranks) return
    this.#pending.delete(job)
    const epoch = (this.#epochs.get(job) ?? 0) + 1
    this.#epochs.set(job, epoch)
    const { patience = DEFAULT_PATIENCE, nowMs } = this.#options
    const group = new Group(waiting, { epoch, patience, nowMs })
    for (const member of waiting) this.#groups.set(member.socket, group)
  }
}

/** Explains which two ranks of one job disagree, and on what. */
function findJoinMismatch(waiting: readonly JoinMessage[], joining: JoinMessage): string | undefined {
  const name = ({ rank, host, port }: JoinMessage) =>
    rank === undefined ? `the rank at ${host}:${port}` : `rank ${rank} on ${host}`
  for (const other of waiting) {
    for (const [field, words] of [
      ['ranks', 'rank count'],
      ['wire', 'type on the wire'],
      ['planHash', 'plan'],
    ] as const) {
      if (other[field] !== joining[field]) {
        return `${name(joining)} has ${words} ${joining[field]}, ${name(other)} has ${other[field]}`
      }
    }
    if (joining.rank !== undefined && joining.rank === other.rank) {
      return `two ranks call themselves ${joining.rank}: ${joining.host}:${joining.port} and ${other.host}:${other.port}`
    }
  }
  return undefined
}
