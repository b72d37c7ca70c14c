import pg from 'pg'
import type { ChangeWait } from '../sql-database.js'
import { CHANGE_CHANNEL, EVERYTHING } from './change-teller.js'
import { connectionSettings, readSession } from './connections.js'
import type { ConnectionPlan } from './read-connection.js'

/** Wakes whoever waits when the record changes. */
interface ChangeListener {
  /** Resolves at the next change that matters, when the time is over, or when `signal` aborts; never rejects. */
  readonly wait: (wait: ChangeWait) => Promise<void>
  readonly close: () => Promise<void>
}

/** Where listening was not possible, it is tried again after so long, ms; until then waiters look by themselves. */
const TRY_AGAIN_MS = 30_000

const HAS_ROOM = `SELECT sum(numbackends) * 2 <= current_setting('max_connections')::int AS has_room
  FROM pg_stat_database`

interface Waiter {
  readonly hears: (change: string) => boolean
  readonly wake: () => void
  /** The listening connection came or went: how long it may last now, ms from its beginning. */
  readonly limit: () => void
}

/**
 * Listens on a connection of its own, made when somebody first waits. Whoever waits is woken when it begins to
 * listen, because what changed before that was not heard.
 */
export function listenForChanges(plan: ConnectionPlan): ChangeListener {
  const waiting = new Set<Waiter>()
  let client: pg.Client | undefined
  let isListening = false
  let isConnecting = false
  let notBeforeMs = 0
  let isClosed = false
  const lose = (lost: pg.Client) => {
    lost.end().catch(() => {})
    if (client !== lost) return
    client = undefined
    isListening = false
    for (const waiter of waiting) waiter.limit()
  }
  const listen = async () => {
    if (client !== undefined || isConnecting || isClosed || performance.now() < notBeforeMs) return
    isConnecting = true
    try {
      const found = await connectToListen(plan)
      if (!found || isClosed) {
        notBeforeMs = performance.now() + TRY_AGAIN_MS
        await found?.end()
        return
      }
      client = found
      found.on('error', () => lose(found))
      found.on('end', () => lose(found))
      found.on('notification', ({ payload = EVERYTHING }) => {
        for (const waiter of [...waiting]) if (waiter.hears(payload)) waiter.wake()
      })
      await found.query(`LISTEN ${CHANGE_CHANNEL}`)
      isListening = client === found
      for (const waiter of [...waiting]) waiter.wake()
    } catch {
      notBeforeMs = performance.now() + TRY_AGAIN_MS
      if (client) lose(client)
    } finally {
      isConnecting = false
    }
  }
  return {
    wait: ({ pollMs, atMostMs, about, signal }) => {
      void listen()
      return new Promise((resolve) => {
        const beganMs = performance.now()
        let timer: NodeJS.Timeout | undefined
        const waiter: Waiter = {
          hears: (change) =>
            about === undefined || change === EVERYTHING || change === about.node || change === about.copyId,
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

/**
 * Connects to the first server that answers. Undefined where nothing could be heard (a pooler gives every transaction
 * another session) or where half of the server's connections are taken: those who change something need the rest.
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
      // The next one, or none.
    }
    await client.end().catch(() => {})
  }
  return undefined
}
