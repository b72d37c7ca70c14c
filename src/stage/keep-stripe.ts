import type Database from 'better-sqlite3'
import type { Stripe } from '../model/copy.js'

/**
 * Marks the objects of a complete listing that belong to other stripes: object i, in the byte order of keys, is of
 * stripe i mod N. Returns what is left to fetch.
 */
export function keepStripe(
  db: Database.Database,
  stripe: Stripe,
): { readonly files: number; readonly contentBytes: number } {
  db.prepare(
    `UPDATE object SET state = 2 WHERE id IN (
      SELECT id FROM (SELECT id, row_number() OVER (ORDER BY key) - 1 AS place FROM object)
      WHERE place % ? <> ?)`,
  ).run(stripe.nodes.length, stripe.index)
  return db
    .prepare<[], { files: number; contentBytes: number }>(
      'SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS contentBytes FROM object WHERE state <> 2',
    )
    .get()!
}
