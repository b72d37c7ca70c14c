import pg from 'pg'
import { connectionSettings } from './connections.js'
import { CHANGE_CHANNEL } from './prepare-schema.js'

/** Wakes whoever waits when the record changes. */
export interface ChangeListener {
  /** Resolves at the next change, after `timeoutMs`, or when `signal` aborts; never rejects. */
  readonly wait: (timeoutMs: number, signal?: AbortSignal) => Promise<void>
  readonly close: () => Promise<void>
}

/**
 * Listens on a connection of its own, made when somebody first waits. While there is none (the server restarts)
 * waits last their whole time, which is why callers look again after it in any case.
 */
export function listenForChanges(url: string): ChangeListener {
  const waiting = new Set<() => void>()
  let client: pg.Client | undefined
  let isClosed = false
  const lose = (lost: pg.Client) => {
    if (client === lost) client = undefined
    lost.end().catch(() => {})
  }
  const listen = async () => {
    if (client !== undefined || isClosed) return
    const made = new pg.Client(connectionSettings(url))
    client = made
    made.on('error', () => lose(made))
    made.on('end', () => lose(made))
    made.on('notification', () => {
      for (const wake of [...waiting]) wake()
    })
    try {
      await made.connect()
      await made.query(`LISTEN ${CHANGE_CHANNEL}`)
    } catch {
      lose(made)
    }
  }
  return {
    wait: (timeoutMs, signal) => {
      void listen()
      return new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer)
          waiting.delete(wake)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        const timer = setTimeout(wake, timeoutMs)
        waiting.add(wake)
        signal?.addEventListener('abort', wake)
        if (signal?.aborted) wake()
      })
    },
    close: async () => {
      isClosed = true
      for (const wake of [...waiting]) wake()
      await client?.end().catch(() => {})
    },
  }
}
