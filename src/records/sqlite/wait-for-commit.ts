import type Database from 'better-sqlite3'
import { LOOK_MS, pause } from '../../platform/poll.js'
import type { ChangeWait } from '../contract/record-store.js'

/**
 * Waits until this or another connection has committed a change to the file. A look takes some microseconds, as SQLite
 * counts commits in shared memory: an idle screen reads nothing. Who waits for one copy polls, as SQLite cannot tell
 * which has changed, and a stager's every report would wake all who wait for others.
 */
export async function waitForCommit(
  connection: Database.Database,
  { pollMs, atMostMs, about, signal }: ChangeWait,
): Promise<void> {
  if (about !== undefined) return pause(pollMs, signal)
  const endMs = performance.now() + atMostMs
  const before = countCommits(connection)
  do await pause(Math.min(LOOK_MS.progress, Math.max(0, endMs - performance.now())), signal)
  while (performance.now() < endMs && signal?.aborted !== true && countCommits(connection) === before)
}

/** Others' commits and this connection's changed rows; undefined where the file cannot be read. */
function countCommits(connection: Database.Database): string | undefined {
  try {
    const others = connection.pragma('data_version', { simple: true })
    const { own } = connection.prepare('SELECT total_changes() AS own').get() as { readonly own: number }
    return `${others} ${own}`
  } catch {
    return undefined // closed, or its disk fails: the next reading says so
  }
}
