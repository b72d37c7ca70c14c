import { setTimeout as sleep } from 'node:timers/promises'
import { openOrClose } from '../../failure/closers.js'
import { log } from '../../log/log.js'
import { planPause } from '../../platform/plan-pause.js'
import { migrate } from '../database/migrate.js'
import { schemaMigrations } from '../database/schema.js'
import type { Durability, SqlDatabase, SqlTransaction, WriteScope } from '../database/sql-database.js'
import { ChangeListener } from './change-listener.js'
import { tellOfChanges } from './change-teller.js'
import { explainFailure } from './classify-failure.js'
import type { Connections } from './connection.js'
import { openConnections } from './connections.js'
import { createTransaction } from './postgres-transaction.js'
import { readConnection } from './read-connection.js'
import { createServerClock } from './server-clock.js'
import {
  type Attempt,
  attempt,
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

/** Keeps two first-time users from creating the schema at once; any number that no other program uses. */
const MIGRATION_LOCK = 7_237_251

/** First number of the advisory locks of nodes; the second is a hash of the node's name. */
const NODE_LOCKS = 7_237_252

const MIGRATIONS = schemaMigrations({
  // Byte order, as SQLite's: name order must not depend on the server's locale.
  text: 'TEXT COLLATE "C"',
  integer: 'BIGINT',
  sequenceKey: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  nowMs: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
  sourceUrl: `source::json ->> 'source'`,
  generated: 'STORED',
})

const OWN_OBJECTS = `
  CREATE TABLE IF NOT EXISTS dsc_turn (turn INTEGER);
  CREATE TABLE IF NOT EXISTS dsc_outcomes (token TEXT PRIMARY KEY, left_at TIMESTAMPTZ NOT NULL DEFAULT now());
  CREATE OR REPLACE FUNCTION dsc_begin(is_whole boolean, locked_node text, outcome text) RETURNS bigint
    LANGUAGE plpgsql AS $$ BEGIN
      -- These end the transaction of a process that was stopped in the middle of it, so that it holds nobody up.
      PERFORM set_config('lock_timeout', '60s', true), set_config('statement_timeout', '60s', true),
        set_config('idle_in_transaction_session_timeout', '20s', true);
      IF is_whole THEN LOCK TABLE dsc_turn IN EXCLUSIVE MODE; ELSE LOCK TABLE dsc_turn IN ROW SHARE MODE; END IF;
      IF locked_node IS NOT NULL THEN PERFORM pg_advisory_xact_lock(${NODE_LOCKS}, hashtext(locked_node)); END IF;
      PERFORM set_config('synchronous_commit', CASE WHEN outcome IS NULL THEN 'off' ELSE 'on' END, true);
      IF outcome IS NOT NULL THEN INSERT INTO dsc_outcomes (token) VALUES (outcome); END IF;
      RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    END $$`

/** Selects the schema version, or -1 without `dsc_begin`, PostgreSQL's addition to the schema. */
const IS_THERE = `SELECT CASE WHEN to_regprocedure('dsc_begin(boolean, text, text)') IS NULL THEN -1
  ELSE (SELECT max(version) FROM dsc_schema) END AS version`
const CLOCK = 'BEGIN; SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms'

/** Migrates the schema to the newest version; if it is current, runs one read-only query. */
async function prepareSchema(connections: Connections, location: string): Promise<Attempt<undefined>> {
  return attempt(connections, async (connection) => {
    const [found] = await Promise.all([
      connection.query(IS_THERE).catch(expectUndefinedTable),
      connection.begin(CLOCK),
      connection.query('ROLLBACK'),
    ])
    if (found?.rows[0]?.version === MIGRATIONS.length) return undefined
    await connection.query(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`)
    await migrate(createTransaction(connection), MIGRATIONS, location)
    await connection.query(OWN_OBJECTS)
    await connection.query('COMMIT')
    return undefined
  })
}

/** An empty database has no `dsc_schema`. */
function expectUndefinedTable(error: unknown): undefined {
  if ((error as { readonly code?: string }).code !== '42P01') throw error
}
