import { connect, type Socket } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import { ExchangeMismatch, LinkLost, PeerLost, type Place } from '../failures.js'
import {
  type JoinMessage,
  type RankMessage,
  RENDEZVOUS_VERSION,
  type RendezvousMessage,
  readMessages,
  rendezvousMessageSchema,
  sendMessage,
} from './messages.js'

export type Welcome = Extract<RendezvousMessage, { kind: 'welcome' }>
export type Suspect = Extract<RendezvousMessage, { kind: 'suspect' }>

/** A rank's line to the rendezvous. */
export interface RendezvousClient {
  readonly welcome: Welcome
  readonly send: (message: RankMessage) => void
  /** Says goodbye, so that nobody takes the end of the connection for a death. */
  readonly leave: (step: number) => void
  readonly destroy: () => void
}

/** What a rank wants to hear. Called until the client is closed; `onFailure` at most once. */
export interface RendezvousEvents {
  readonly onFailure: (error: Error) => void
  readonly onCommit: (step: number) => void
  readonly onSuspect: (suspect: Suspect) => void
  readonly onLeft: (rank: number, host: string, step: number) => void
}

/** Joins a job and waits until all its ranks are there. Rejects with ExchangeMismatch if they do not fit together. */
export async function joinRendezvous(
  at: { readonly host: string; readonly port: number },
  join: Omit<JoinMessage, 'kind' | 'version'>,
  events: RendezvousEvents,
  signal: AbortSignal | undefined,
): Promise<RendezvousClient> {
  const where = `the rendezvous at ${at.host}:${at.port}`
  const socket = await dial(at, where)
  const welcomed = Promise.withResolvers<Welcome>()
  let isWelcome = false
  let isClosed = false
  const fail = (error: Error) => {
    if (isClosed) return
    if (isWelcome) events.onFailure(error)
    else welcomed.reject(error)
    isClosed = true
  }
  readMessages(socket, rendezvousMessageSchema, (message) => {
    switch (message.kind) {
      case 'welcome':
        isWelcome = true
        welcomed.resolve(message)
        break
      case 'refused':
        fail(
          message.reason === 'mismatch'
            ? new ExchangeMismatch(message.message)
            : new DscError('USAGE', message.message, { hint: 'give every rank the token of the rendezvous' }),
        )
        break
      case 'aborted':
        fail(new ExchangeMismatch(message.message))
        break
      case 'lost': {
        const place: Place = { step: message.step, bucket: message.bucket, phase: message.phase }
        fail(new PeerLost({ rank: message.rank, host: message.host, place, reason: message.reason }))
        break
      }
      case 'linkLost': {
        const { ranks, hosts, step, bucket, phase } = message
        fail(new LinkLost({ ranks, hosts, place: { step, bucket, phase } }))
        break
      }
      case 'commit':
        events.onCommit(message.step)
        break
      case 'suspect':
        events.onSuspect(message)
        break
      case 'left':
        events.onLeft(message.rank, message.host, message.step)
        break
    }
    return undefined
  })
  const onAbort = () => fail(new DscError('INTERRUPTED', `interrupted while waiting at ${where}`))
  signal?.addEventListener('abort', onAbort, { once: true })
  socket.on('error', () => {})
  socket.on('close', () => {
    signal?.removeEventListener('abort', onAbort)
    fail(
      new DscError('PEER_LOST', `${where} is gone`, {
        hint: 'start it again with `dsc exchange serve` and rejoin',
      }),
    )
  })
  sendMessage(socket, { kind: 'join', version: RENDEZVOUS_VERSION, ...join })
  let welcome: Welcome
  try {
    welcome = await welcomed.promise
  } catch (error) {
    socket.destroy()
    throw error
  }
  return {
    welcome,
    send: (message) => sendMessage(socket, message),
    leave(step) {
      isClosed = true
      sendMessage(socket, { kind: 'leave', step })
      socket.end()
    },
    destroy() {
      isClosed = true
      socket.destroy()
    },
  }
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
