import { setTimeout as sleep } from 'node:timers/promises'
import { redactUrl } from '../../failure/redact.js'
import type { Durability, SqlDatabase, SqlTransaction, WriteScope } from '../sql-database.js'
import { listenForChanges } from './change-listener.js'
import { tellOfChanges } from './change-teller.js'
import { explainFailure } from './classify-failure.js'
import { type Connections, openConnections } from './connections.js'
import { prepareSchema } from './prepare-schema.js'
import { createServerClock } from './server-clock.js'
import {
  type Attempt,
  findOutcome,
  forgetOldOutcomes,
  tryRead,
  tryStatement,
  tryWrite,
} from './transaction-attempt.js'

export interface PostgresOptions {
  /** How long a transaction tries to reach a server that is gone, ms, 0 or more. Default 60,000. */
  readonly patienceMs?: number
  /** Most connections of this process, 1 to 100. Default 8. */
  readonly connections?: number
  /** Called with the reason of every repeated attempt. */
  readonly onRetry?: (reason: 'conflict' | 'lost') => void
}

const DEFAULT_PATIENCE_MS = 60_000
/** The first contact: a wrong address should be told soon. */
const OPEN_PATIENCE_MS = 10_000
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1000
/** Locks leave only deadlocks and keys inserted at once; a bug must not repeat for ever. */
const MOST_CONFLICTS = 20
/** One write in so many clears away what others left an hour ago. */
const FORGET_CHANCE = 1 / 2000

/**
 * Opens the record in a PostgreSQL database and brings it to the current schema.
 *
 * Writers take turns per node, by advisory locks; those of different nodes run side by side. (SERIALIZABLE with
 * repetition was measured first: with rows as few as a cluster has, 85 % of the attempts of 16 clients conflicted.)
 * A transaction whose connection breaks is repeated on a new one until `patienceMs` is over; when it broke during
 * COMMIT, the server is asked whether it had committed, so nothing happens twice.
 * Rejects with RECORD_UNAVAILABLE or RECORD_NEWER.
 */
export async function openPostgresDatabase(url: string, options: PostgresOptions = {}): Promise<SqlDatabase> {
  const location = redactUrl(url)
  const clock = createServerClock()
  const connections = openConnections(url, options.connections ?? 8, clock)
  const teller = tellOfChanges(connections)
  const repeat = createRepeater(connections, location, options.onRetry ?? (() => {}))
  const patienceMs = options.patienceMs ?? DEFAULT_PATIENCE_MS
  const write = async <T>(
    durability: Durability,
    scope: WriteScope,
    work: (transaction: SqlTransaction) => Promise<T>,
  ) => {
    if (Math.random() < FORGET_CHANCE) await forgetOldOutcomes(connections)
    const value = await repeat(patienceMs, () => tryWrite(connections, { durability, scope }, work))
    teller.tell(scope)
    return value
  }
  try {
    await repeat(Math.min(patienceMs, OPEN_PATIENCE_MS), () => prepareSchema(connections, location))
  } catch (error) {
    await connections.close()
    throw error
  }
  const changes = listenForChanges(url)
  const all: SqlDatabase['all'] = (sql, parameters) =>
    repeat(patienceMs, () => tryStatement(connections, sql, parameters))
  return {
    location,
    nowMs: clock.nowMs,
    write,
    read: (work) => repeat(patienceMs, () => tryRead(connections, work)),
    all,
    map: async (sql, parameters, make) => (await all(sql, parameters)).map((row) => make(row)),
    waitForChange: changes.wait,
    close: async () => {
      await Promise.all([changes.close(), teller.close()])
      await connections.close()
    },
  }
}

type Repeat = <T>(patienceMs: number, attempt: () => Promise<Attempt<T>>) => Promise<T>

/** Repeats what failed for a passing reason: conflicts as long as it takes, lost connections for `patienceMs`. */
function createRepeater(
  connections: Connections,
  location: string,
  onRetry: NonNullable<PostgresOptions['onRetry']>,
): Repeat {
  return async (patienceMs, attempt) => {
    let conflicts = 0
    let lostSinceMs: number | undefined
    const pauseAfterLoss = async (error: unknown, losses: number) => {
      onRetry('lost')
      lostSinceMs ??= performance.now()
      if (performance.now() - lostSinceMs > patienceMs) throw explainFailure(error, location)
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(losses, 10))
      await sleep(pauseMs * (0.5 + Math.random() / 2))
    }
    for (let losses = 0; ; ) {
      const tried = await attempt()
      if (tried.outcome === 'done') return tried.value
      if (tried.outcome === 'failed') throw explainFailure(tried.error, location)
      if (tried.outcome === 'conflict') {
        conflicts += 1
        if (conflicts > MOST_CONFLICTS) throw explainFailure(tried.error, location)
        onRetry('conflict')
        await sleep(Math.random() * FIRST_PAUSE_MS * conflicts)
        continue
      }
      await pauseAfterLoss(tried.error, losses++)
      while (tried.unsure !== undefined) {
        const found = await findOutcome(connections, tried.unsure.token)
        if (found.outcome === 'done' && found.value === 'committed') return tried.unsure.value
        if (found.outcome === 'done') break
        if (found.outcome === 'failed') throw explainFailure(found.error, location)
        await pauseAfterLoss(found.error, losses++)
      }
    }
  }
}
