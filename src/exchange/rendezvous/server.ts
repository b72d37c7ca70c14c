import { timingSafeEqual } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { DEFAULT_PATIENCE, type Patience } from '../plan/suspect.js'
import { formGroup, type Group } from './group.js'
import {
  type JoinMessage,
  type RankMessage,
  RENDEZVOUS_VERSION,
  rankMessageSchema,
  readMessages,
  sendMessage,
} from './messages.js'
import { answerProbes } from './probe-echo.js'

const HEALTH_INTERVAL_MS = 250

/** Where ranks meet, learn of each other, and hear who is gone. */
export interface Rendezvous {
  readonly host: string
  readonly port: number
  readonly close: () => Promise<void>
}

/** Starts a rendezvous. It serves any number of jobs, and answers probes of the link. */
export async function openRendezvous(options: {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Ranks must present it. Without one anybody who can connect may join. */
  readonly token?: string | undefined
  readonly patience?: Patience
  readonly nowMs: () => number
}): Promise<Rendezvous> {
  const { host, port, token, patience = DEFAULT_PATIENCE, nowMs } = options
  const pending = new Map<string, { readonly socket: Socket; readonly join: JoinMessage }[]>()
  const epochs = new Map<string, number>()
  const groups = new Map<Socket, Group>()
  const sockets = new Set<Socket>()

  const join = (socket: Socket, message: JoinMessage) => {
    const waiting = pending.get(message.job) ?? []
    const problem = findJoinMismatch(
      waiting.map(({ join }) => join),
      message,
    )
    if (problem !== undefined) {
      for (const other of [socket, ...waiting.map((member) => member.socket)]) {
        sendMessage(other, { kind: 'refused', reason: 'mismatch', message: problem })
      }
      pending.delete(message.job)
      return
    }
    waiting.push({ socket, join: message })
    pending.set(message.job, waiting)
    if (waiting.length < message.ranks) return
    pending.delete(message.job)
    const epoch = (epochs.get(message.job) ?? 0) + 1
    epochs.set(message.job, epoch)
    const group = formGroup(waiting, { epoch, patience, nowMs })
    for (const member of waiting) groups.set(member.socket, group)
  }
  const isWelcome = (socket: Socket, message: RankMessage): boolean => {
    if (message.kind !== 'join' && message.kind !== 'probe') return groups.has(socket)
    const problem =
      message.version !== RENDEZVOUS_VERSION
        ? `the rendezvous speaks version ${RENDEZVOUS_VERSION}, this rank version ${message.version}`
        : isTokenRight(token, message.token)
          ? undefined
          : 'the rendezvous asks for another token'
    if (problem) sendMessage(socket, { kind: 'refused', reason: 'denied', message: problem })
    return problem === undefined
  }
  const accept = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    readMessages(
      socket,
      rankMessageSchema,
      (message) => {
        if (!isWelcome(socket, message)) return undefined
        if (message.kind === 'probe') return 'raw'
        if (message.kind === 'join') join(socket, message)
        else groups.get(socket)?.handle(socket, message)
        return undefined
      },
      (rest) => answerProbes(socket, rest),
    )
    socket.on('error', () => {}) // the close that follows says all there is to say
    socket.on('close', () => {
      sockets.delete(socket)
      groups.get(socket)?.disconnected(socket)
      groups.delete(socket)
      for (const [job, waiting] of pending) {
        pending.set(
          job,
          waiting.filter((member) => member.socket !== socket),
        )
      }
    })
  }

  const server = createServer(accept)
  await listen(server, host, port)
  const timer = setInterval(() => {
    for (const group of new Set(groups.values())) group.checkHealth()
  }, HEALTH_INTERVAL_MS)
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

/** Says which two ranks of one job disagree, and on what. */
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

function isTokenRight(expected: string | undefined, found: string | undefined): boolean {
  if (expected === undefined) return true
  const [a, b] = [Buffer.from(expected), Buffer.from(found ?? '')]
  return a.length === b.length && timingSafeEqual(a, b)
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
