import pg from 'pg'
import type { ChangeWait } from '../sql-database.js'
import { CHANGE_CHANNEL, EVERYTHING } from './change-teller.js'
import { connectionSettings } from './connections.js'

/** Wakes whoever waits when the record changes. */
export interface ChangeListener {
  /** Resolves at the next change that matters, when the time is over, or when `signal` aborts; never rejects. */
  readonly wait: (wait: ChangeWait) => Promise<void>
  readonly close: () => Promise<void>
}

interface Waiter {
  readonly hears: (told: string) => boolean
  readonly wake: () => void
  /** The listening connection came or went: how long it may last now, ms from its beginning. */
  readonly limit: () => void
}

/**
 * Listens on a connection of its own, made when somebody first waits. Whoever waits is woken when it begins to
 * listen, because what changed before that was not heard.
 */
export function listenForChanges(url: string): ChangeListener {
  const waiting = new Set<Waiter>()
  let client: pg.Client | undefined
  let isListening = false
  let isClosed = false
  const lose = (lost: pg.Client) => {
    lost.end().catch(() => {})
    if (client !== lost) return
    client = undefined
    isListening = false
    for (const waiter of waiting) waiter.limit()
  }
  const listen = async () => {
    if (client !== undefined || isClosed) return
    const made = new pg.Client(connectionSettings(url))
    client = made
    made.on('error', () => lose(made))
    made.on('end', () => lose(made))
    made.on('notification', ({ payload = EVERYTHING }) => {
      for (const waiter of [...waiting]) if (waiter.hears(payload)) waiter.wake()
    })
    try {
      await made.connect()
      await made.query(`LISTEN ${CHANGE_CHANNEL}`)
      isListening = client === made
      for (const waiter of [...waiting]) waiter.wake()
    } catch {
      lose(made)
    }
  }
  return {
    wait: ({ pollMs, atMostMs, about, signal }) => {
      void listen()
      return new Promise((resolve) => {
        const beganMs = performance.now()
        let timer: NodeJS.Timeout | undefined
        const waiter: Waiter = {
          hears: (told) =>
            about === undefined || told === EVERYTHING || told === about.node || told === about.copyId,
          wake: () => {
            clearTimeout(timer)
            waiting.delete(waiter)
            signal?.removeEventListener('abort', waiter.wake)
            resolve()
          },
          limit: () => {
            clearTimeout(timer)
            const limitMs = isListening ? atMostMs : pollMs
            timer = setTimeout(waiter.wake, Math.max(0, beganMs + limitMs - performance.now()))
          },
        }
        waiter.limit()
        waiting.add(waiter)
        signal?.addEventListener('abort', waiter.wake)
        if (signal?.aborted) waiter.wake()
      })
    },
    close: async () => {
      isClosed = true
      for (const waiter of [...waiting]) waiter.wake()
      await client?.end().catch(() => {})
    },
  }
}
