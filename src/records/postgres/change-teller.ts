import { setTimeout as sleep } from 'node:timers/promises'
import type { WriteScope } from '../database/sql-database.js'
import type { Connections } from './connection.js'
import { attempt } from './transaction-attempt.js'

/** What was told means: anything may have changed. */
export const EVERYTHING = ''
/** Told on this channel: the node, copy or lease that changed, or `EVERYTHING`. */
export const CHANGE_CHANNEL = 'dsc_record'

/** A process tells at most once in so long, ms. */
const PAUSE_MS = 50
/** More than so many things at once are told as `EVERYTHING`. */
const MAX_THINGS = 50

const NOTIFY = 'SELECT pg_notify($1, thing) FROM json_array_elements_text($2::json) AS thing'

/** Tells those who listen what this process changed. */
interface ChangeTeller {
  /** Notes that a write of this scope was committed; returns at once. */
  readonly tell: (scope: WriteScope) => void
  /** Resolves when all is told, or cannot be. */
  readonly close: () => Promise<void>
}

/**
 * Tells of changes after they are committed, several at once. PostgreSQL lets one transaction that notifies commit
 * at a time; within the changes themselves, each would hold up all others of the cluster until it is on disk. What
 * is not told because the process ends first, those who wait find when they look again.
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
      await sleep(PAUSE_MS, undefined, { signal: closing.signal }).catch(() => {})
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
