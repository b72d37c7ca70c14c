import { setTimeout as sleep } from 'node:timers/promises'
import { openOrClose } from '../../failure/closers.js'
import { log } from '../../log/log.js'
import { planPause } from '../../platform/plan-pause.js'
import type { Durability, SqlDatabase, SqlTransaction, WriteScope } from '../database/sql-database.js'
import { ChangeListener } from './change-listener.js'
import { tellOfChanges } from './change-teller.js'
import { explainFailure } from './classify-failure.js'
import type { Connections } from './connection.js'
import { openConnections } from './connections.js'
import { prepareSchema } from './prepare-schema.js'
import { readConnection } from './read-connection.js'
import { createServerClock } from './server-clock.js'
import {
  type Attempt,
  findOutcome,
  forgetOldOutcomes,
  tryRead,
  tryStatement,
  tryWrite,
} from './transaction-attempt.js'

/** Retry time, connections and callbacks for a server. */
export interface PostgresOptions {
  /** How long opening, and each transaction, keeps retrying an unreachable server, ms, 0 or more. Default 60,000. */
  readonly patienceMs?: number
  /** Maximum number of this process's connections, 1 to 100. Default 8. */
  readonly connections?: number
  /** Called with the reason of every retry. */
  readonly onRetry?: (reason: 'conflict' | 'lost') => void
  /** Called with a sentence for people when the server has not answered for two seconds. */
  readonly onAway?: ((sentence: string) => void) | undefined
}

const DEFAULT_PATIENCE_MS = 60_000
const DEFAULT_CONNECTIONS = 8
/** A shorter restart is not worth reporting. */
const SILENT_MS = 2000
const PAUSES = { firstMs: 20, longestMs: 1000 }
/** The locks leave only deadlocks and keys inserted at once as conflicts; a bug must not retry forever. */
const CONFLICTS = { ...PAUSES, patienceMs: Number.POSITIVE_INFINITY, attempts: 20 }
/** Probability that a write also clears tokens that others left an hour ago. */
const FORGET_CHANCE = 1 / 2000

/**
 * Opens the record in a PostgreSQL database, migrated to the current schema.
 *
 * Writers take turns per node, by advisory locks; writers of different nodes run side by side. (SERIALIZABLE with
 * retries was measured first: with as few rows as a cluster has, 85 % of the attempts of 16 clients conflicted.) A
 * transaction whose connection breaks is retried on a new one for up to `patienceMs`. If it broke during COMMIT, dsc
 * asks the server whether it committed, so nothing happens twice. Rejects with RECORD_UNAVAILABLE or RECORD_NEWER.
 */
export async function openPostgresDatabase(url: string, options: PostgresOptions = {}): Promise<SqlDatabase> {
  const plan = readConnection(url)
  const { location } = plan
  const clock = createServerClock()
  const connections = openConnections(plan, options.connections ?? DEFAULT_CONNECTIONS, clock)
  const changes = new ChangeListener(plan)
  const teller = tellOfChanges(connections)
  const repeat = createRepeater(connections, location, options)
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
  await openOrClose((closers) => {
    closers.add(() => connections.close())
    return repeat(patienceMs, () => prepareSchema(connections, location))
  })
  const all: SqlDatabase['all'] = (sql, parameters) =>
    repeat(patienceMs, () => tryStatement(connections, sql, parameters))
  return {
    location,
    nowMs: clock.nowMs,
    write,
    read: (work) => repeat(patienceMs, () => tryRead(connections, work)),
    all,
    map: async (sql, parameters, make) => (await all(sql, parameters)).map((row) => make(row)),
    waitForChange: (wait) => changes.wait(wait),
    findHindrance: async () => {
      const [row] = await all(
        `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS is_only`,
      )
      if (row?.standby === 't') return 'the server is a standby, which takes no writes'
      return row?.is_only === 'on' ? 'the server takes no writes (default_transaction_read_only)' : undefined
    },
    close: async () => {
      await Promise.all([changes.close(), teller.close()])
      await connections.close()
    },
  }
}

type Repeat = <T>(patienceMs: number, attempt: () => Promise<Attempt<T>>) => Promise<T>

/** Retries transient failures: conflicts as long as it takes, lost connections for `patienceMs`. */
function createRepeater(
  connections: Connections,
  location: string,
  { onRetry = () => {}, onAway }: PostgresOptions,
): Repeat {
  return async (patienceMs, attempt) => {
    let conflicts = 0
    let lostSinceMs: number | undefined
    let isTold = false
    const pauseAfterLoss = async (error: unknown, losses: number) => {
      onRetry('lost')
      log('verbose', `${location}: the connection was lost (${(error as Error).message}); trying again`)
      lostSinceMs ??= performance.now()
      const awayMs = performance.now() - lostSinceMs
      const pauseMs = planPause(
        { attempts: losses, elapsedMs: awayMs, random: Math.random() },
        { ...PAUSES, patienceMs },
      )
      if (pauseMs === undefined) throw explainFailure(error, location)
      if (awayMs > SILENT_MS && !isTold) {
        isTold = true
        const leftS = Math.ceil((patienceMs - awayMs) / 1000)
        onAway?.(`the record ${location} does not answer; waiting for it for up to ${leftS} s`)
      }
      await sleep(pauseMs)
    }
    for (let losses = 0; ; ) {
      const tried = await attempt()
      if (tried.outcome === 'done') return tried.value
      if (tried.outcome === 'failed') throw explainFailure(tried.error, location)
      if (tried.outcome === 'conflict') {
        conflicts += 1
        const pauseMs = planPause({ attempts: conflicts, elapsedMs: 0, random: Math.random() }, CONFLICTS)
        if (pauseMs === undefined) throw explainFailure(tried.error, location)
        onRetry('conflict')
        log('verbose', `${location}: another writer was first; trying again`)
        await sleep(pauseMs)
        continue
      }
      await pauseAfterLoss(tried.error, ++losses)
      while (tried.unsure !== undefined) {
        const found = await findOutcome(connections, tried.unsure.token)
        if (found.outcome === 'done' && found.value === 'committed') return tried.unsure.value
        if (found.outcome === 'done') break
        if (found.outcome === 'failed') throw explainFailure(found.error, location)
        await pauseAfterLoss(found.error, ++losses)
      }
    }
  }
}
