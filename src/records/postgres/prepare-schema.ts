import { migrate } from '../database/migrate.js'
import { schemaMigrations } from '../database/schema.js'
import type { Connections } from './connection.js'
import { createTransaction } from './postgres-transaction.js'
import { type Attempt, attempt } from './transaction-attempt.js'

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
export async function prepareSchema(connections: Connections, location: string): Promise<Attempt<undefined>> {
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
