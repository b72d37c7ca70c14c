import { pause } from '../../platform/poll.js'
import type { WriteScope } from '../database/sql-database.js'
import type { Connections } from './connection.js'
import { attempt } from './transaction-attempt.js'

/** A notification that anything may have changed. */
export const EVERYTHING = ''
/** Channel of the notifications: each is the node, copy or lease that changed, or `EVERYTHING`. */
export const CHANGE_CHANNEL = 'dsc_record'

/** Minimum interval between a process's notifications, ms. */
const PAUSE_MS = 50
/** More changes than this at once are sent as `EVERYTHING`. */
const MAX_THINGS = 50

const NOTIFY = 'SELECT pg_notify($1, thing) FROM json_array_elements_text($2::json) AS thing'

/** Notifies listeners of this process's changes. */
interface ChangeTeller {
  /** Notes that a write of this scope was committed; returns at once. */
  readonly tell: (scope: WriteScope) => void
  /** Resolves when every notification is sent, or cannot be. */
  readonly close: () => Promise<void>
}

/**
 * Sends notifications after the changes are committed, several at once. PostgreSQL commits one notifying transaction at
 * a time; inside the changes themselves, each would block all others of the cluster until it is on disk. If the process
 * ends before it notifies, waiters find the change at their next poll.
 */
export function tellOfChanges(connections: Connections): ChangeTeller {
  const pending = new Set<string>()
  let running: Promise<void> | undefined
  const closing = new AbortController()
  const run = async () => {
    while (pending.size > 0) {
      const changes = pending.size > MAX_THINGS ? [EVERYTHING] : [...pending]
      pending.clear()
      await attempt(connections, async (connection) => {
        const begun = connection.query('BEGIN; SET LOCAL synchronous_commit = off')
        const notified = connection.query(NOTIFY, [CHANGE_CHANNEL, JSON.stringify(changes)])
        await Promise.all([begun, notified, connection.query('COMMIT')])
      })
      await pause(PAUSE_MS, closing.signal)
    }
    running = undefined
  }
  return {
    tell: (scope) => {
      if (scope === 'rows') return
      pending.add(scope === 'all' ? EVERYTHING : Object.values(scope)[0]!)
      running ??= run()
    },
    close: async () => {
      closing.abort()
      await running
    },
  }
}
