import { mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import type { RecordLocation } from '../../config/config.js'
import { isDscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import { type FileSystemKind, readFileSystemKind } from '../../platform/file-system-kind.js'
import { findNearestExisting } from '../../platform/nearest-folder.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { type Check, errorCodeOf, failed, ok } from './check.js'

/** Opens the record, which somebody else closes. Rejects with a DscError. */
type OpenRecord = () => Promise<Pick<RecordStore, 'listDatasets' | 'findHindrance' | 'location'>>

/** Checks that the record can be opened, and that SQLite works in its place. */
export async function checkRecord(
  location: RecordLocation,
  open: OpenRecord,
  readKind: (path: string) => Promise<FileSystemKind> = readFileSystemKind,
): Promise<Check[]> {
  const checks = location.kind === 'sqlite' ? await checkSqliteFolder(location.path, readKind) : []
  if (checks.some(({ status }) => status === 'failed')) return checks
  try {
    const record = await open()
    const { length } = await record.listDatasets()
    const hindrance = await record.findHindrance()
    const opened =
      hindrance === undefined
        ? ok('record', `${record.location} opens, with ${formatCount(length, 'dataset')}`)
        : failed(
            'record',
            `${record.location}: ${hindrance}`,
            'wait for the fail-over, or let `record:` name the primary, too',
          )
    return [...checks, opened, ...(location.kind === 'sqlite' ? [checkPages(location.path)] : [])]
  } catch (error) {
    if (!isDscError(error)) throw error
    return [...checks, failed('record', error.message, error.hint)]
  }
}

/** Reads every page, to find damage before a command meets it. */
function checkPages(path: string): Check {
  const name = 'record integrity'
  const hint =
    'move the file away and run dsc cleanup: it makes a new record of the copies on disk; locks and leases are lost'
  let database: Database.Database | undefined
  try {
    database = new Database(path, { readonly: true, timeout: 10_000 })
    const found = database.pragma('quick_check(1)', { simple: true })
    return found === 'ok' ? ok(name, 'ok') : failed(name, `${path}: ${String(found)}`, hint)
  } catch (error) {
    return failed(name, `${path} cannot be read: ${errorCodeOf(error)}`, hint)
  } finally {
    database?.close()
  }
}

async function checkSqliteFolder(
  path: string,
  readKind: (path: string) => Promise<FileSystemKind>,
): Promise<Check[]> {
  const folder = await findNearestExisting(dirname(path))
  const kind = await readKind(folder)
  if (kind.isNetwork) {
    return [
      failed(
        'record file system',
        `${folder} is on ${kind.name}, where the locks of SQLite do not hold`,
        'put the record on a local disk, or into PostgreSQL (record: postgres://…)',
      ),
    ]
  }
  return [ok('record file system', kind.name), await checkWal(folder)]
}

/** Writes through one connection and reads through another, in a temporary folder. */
async function checkWal(folder: string): Promise<Check> {
  const name = 'record WAL'
  const hint = 'put the record into a writable folder on a local disk'
  let trial: string
  try {
    trial = await mkdtemp(join(folder, '.dsc-doctor-'))
  } catch (error) {
    return failed(name, `cannot write to ${folder}: ${errorCodeOf(error)}`, hint)
  }
  try {
    const path = join(trial, 'trial.db')
    const writer = new Database(path)
    const mode = writer.pragma('journal_mode = WAL', { simple: true })
    writer.exec('CREATE TABLE trial (value INTEGER); INSERT INTO trial VALUES (7)')
    const reader = new Database(path, { readonly: true })
    const value = reader.prepare('SELECT value FROM trial').pluck().get()
    reader.close()
    writer.close()
    return mode === 'wal' && value === 7
      ? ok(name, 'works')
      : failed(name, `expected journal mode wal and value 7, found ${mode} and ${value}`, hint)
  } catch (error) {
    return failed(name, `SQLite fails in ${folder}: ${errorCodeOf(error)}`, hint)
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}
