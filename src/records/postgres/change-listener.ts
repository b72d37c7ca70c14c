import pg from 'pg'
import type { ChangeWait } from '../contract/record-store.js'
import { CHANGE_CHANNEL, EVERYTHING } from './change-teller.js'
import { connectionSettings, readSession } from './connections.js'
import type { ConnectionPlan } from './read-connection.js'

/** Interval between attempts to listen, ms; until one succeeds, waiters poll. */
const TRY_AGAIN_MS = 30_000

const HAS_ROOM = `SELECT sum(numbackends) * 2 <= current_setting('max_connections')::int AS has_room
  FROM pg_stat_database`

interface Waiter {
  readonly hears: (change: string) => boolean
  readonly wake: () => void
  /** The listening connection opened or closed: sets how long the wait may now last, ms from its beginning. */
  readonly limit: () => void
}

/**
 * Wakes waiters when the record changes. Listens on its own connection, made on the first wait. Waiters also wake when
 * it begins to listen, because it heard nothing of earlier changes.
 */
export class ChangeListener {
  readonly #plan: ConnectionPlan
  readonly #waiting = new Set<Waiter>()
  #client: pg.Client | undefined
  #isListening = false
  #isConnecting = false
  #isClosed = false
  #notBeforeMs = 0

  constructor(plan: ConnectionPlan) {
    this.#plan = plan
  }

  /** Resolves at the next relevant change, when the time is over, or when `signal` aborts; never rejects. */
  wait({ pollMs, atMostMs, about, signal }: ChangeWait): Promise<void> {
    void this.#listen()
    return new Promise((resolve) => {
      const beganMs = performance.now()
      let timer: NodeJS.Timeout | undefined
      const waiter: Waiter = {
        hears: (change) =>
          about === undefined || change === EVERYTHING || change === about.node || change === about.copyId,
        wake: () => {
          clearTimeout(timer)
          this.#waiting.delete(waiter)
          signal?.removeEventListener('abort', waiter.wake)
          resolve()
        },
        limit: () => {
          clearTimeout(timer)
          const limitMs = this.#isListening ? atMostMs : pollMs
          timer = setTimeout(waiter.wake, Math.max(0, beganMs + limitMs - performance.now()))
        },
      }
      waiter.limit()
      this.#waiting.add(waiter)
      signal?.addEventListener('abort', waiter.wake)
      if (signal?.aborted) waiter.wake()
    })
  }

  /** Wakes every waiter and stops listening. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    await this.#client?.end().catch(() => {})
  }

  async #listen(): Promise<void> {
    if (this.#client !== undefined || this.#isConnecting || this.#isClosed) return
    if (performance.now() < this.#notBeforeMs) return
    this.#isConnecting = true
    try {
      const found = await connectToListen(this.#plan)
      if (!found || this.#isClosed) {
        this.#notBeforeMs = performance.now() + TRY_AGAIN_MS
        await found?.end()
        return
      }
      this.#client = found
      found.on('error', () => this.#lose(found))
      found.on('end', () => this.#lose(found))
      found.on('notification', ({ payload = EVERYTHING }) => this.#wake(payload))
      await found.query(`LISTEN ${CHANGE_CHANNEL}`)
      this.#isListening = this.#client === found
      this.#wake()
    } catch {
      this.#notBeforeMs = performance.now() + TRY_AGAIN_MS
      if (this.#client) this.#lose(this.#client)
    } finally {
      this.#isConnecting = false
    }
  }

  /** Wakes the waiters that a change concerns; without one, all of them. */
  #wake(change?: string): void {
    for (const waiter of [...this.#waiting]) if (change === undefined || waiter.hears(change)) waiter.wake()
  }

  #lose(lost: pg.Client): void {
    lost.end().catch(() => {})
    if (this.#client !== lost) return
    this.#client = undefined
    this.#isListening = false
    for (const waiter of this.#waiting) waiter.limit()
  }
}

/**
 * Connects to the first server that answers. Undefined if notifications could not arrive (a pooler gives every
 * transaction another session) or if half of the server's connections are taken: writers need the rest.
 */
async function connectToListen(plan: ConnectionPlan): Promise<pg.Client | undefined> {
  for (const target of plan.targets) {
    const client = new pg.Client(connectionSettings(plan, target))
    client.on('error', () => {})
    try {
      await client.connect()
      const { isPooled, isStandby } = await readSession(client)
      const { rows } = await client.query<{ has_room: string }>(HAS_ROOM)
      if (!isPooled && !isStandby && rows[0]?.has_room === 't') return client
    } catch {
      // Try the next one, if any.
    }
    await client.end().catch(() => {})
  }
  return undefined
}
