import { migrate } from '../migrate.js'
import { schemaMigrations } from '../schema.js'
import type { Connections } from './connections.js'
import { createTransaction } from './postgres-transaction.js'
import { type Attempt, attempt } from './transaction-attempt.js'

/** Keeps two first-time users from making the schema at once; any number that nobody else uses. */
const MIGRATION_LOCK = 7_237_251

/** Sent to whoever listens when a copy changes its state, appears or goes. */
export const CHANGE_CHANNEL = 'dsc_record'

const MIGRATIONS = schemaMigrations({
  // Byte order, as SQLite's: the order of names must not depend on the server's locale.
  text: 'TEXT COLLATE "C"',
  integer: 'BIGINT',
  sequenceKey: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  nowMs: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
})

const OWN_OBJECTS = `
  CREATE TABLE IF NOT EXISTS dsc_turn (turn INTEGER);
  CREATE TABLE IF NOT EXISTS dsc_outcomes (token TEXT PRIMARY KEY, left_at TIMESTAMPTZ NOT NULL DEFAULT now());
  CREATE OR REPLACE FUNCTION dsc_tell_change() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_notify(''${CHANGE_CHANNEL}'', ''''); RETURN NULL; END';
  DROP TRIGGER IF EXISTS dsc_copies_change ON copies;
  CREATE TRIGGER dsc_copies_change AFTER INSERT OR DELETE OR UPDATE OF state ON copies
    FOR EACH STATEMENT EXECUTE FUNCTION dsc_tell_change()`

/** Brings the schema to the newest version; only reads when it is there already. */
export async function prepareSchema(connections: Connections, location: string): Promise<Attempt<undefined>> {
  return attempt(connections, async (connection) => {
    const there = await connection.query(`SELECT to_regclass('dsc_turn') IS NOT NULL AS there`)
    if (there.rows[0]?.there === 't') {
      const found = await connection.query('SELECT max(version) AS version FROM dsc_schema')
      if (found.rows[0]?.version === MIGRATIONS.length) {
        await connection.begin('BEGIN') // for the server's clock
        await connection.query('ROLLBACK')
        return undefined
      }
    }
    await connection.query(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`)
    await migrate(createTransaction(connection), MIGRATIONS, location)
    await connection.query(OWN_OBJECTS)
    await connection.query('COMMIT')
    await connection.begin('BEGIN')
    await connection.query('ROLLBACK')
    return undefined
  })
}
