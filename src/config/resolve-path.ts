import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DscError } from '../failure/dsc-error.js'
import { redactUrl } from '../failure/redact.js'
import type { RecordLocation } from './config.js'

/** The base of relative paths. */
export interface PathBase {
  /** Folder of the file (or working folder of the variable or flag) that contains the path. */
  readonly folder: string
  readonly homeDirectory: string
}

/** Makes a path absolute; `~/` is the home folder. */
export function resolvePath(raw: string, { folder, homeDirectory }: PathBase): string {
  if (raw === '~' || raw.startsWith('~/')) return join(homeDirectory, raw.slice(1))
  return resolve(folder, raw)
}

/** Makes a source absolute: a plain path becomes a file:// URL, any other source stays unchanged. */
export function resolveSource(raw: string, base: PathBase): string {
  return /^[a-z0-9]+:/i.test(raw) ? raw : pathToFileURL(resolvePath(raw, base)).href
}

/** Words of a libpq connection string, which is not a file. */
const CONNECTION_WORD = /(^|\s)(host|hostaddr|port|dbname|user|password|sslmode|service|options)\s*=/i

/** Reads the record's location. `where` names the setting in the error, which never shows a possible password. */
export function resolveRecord(raw: string, base: PathBase, where: string): RecordLocation {
  if (/^postgres(ql)?:\/\//.test(raw)) return { kind: 'postgres', url: raw }
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(raw)?.[1] ?? raw
  const expected = `${where}: expected sqlite:///file, postgres://user@host/database or a file`
  const hint =
    'write record: postgres://user@host:5432/database, and the password into PGPASSWORD or ~/.pgpass'
  if (CONNECTION_WORD.test(path))
    throw new DscError('CONFIG_INVALID', `${expected}, found a connection string of the form key=value`, {
      hint,
    })
  const scheme = /^([a-z][a-z0-9+.-]+):(\/\/)?/i.exec(path)
  if (scheme) {
    const found = scheme[2] === undefined ? `something that begins with ${scheme[1]}:` : redactUrl(raw)
    throw new DscError('CONFIG_INVALID', `${expected}, found ${found}`, { hint })
  }
  const absolute = resolvePath(path, base)
  return { kind: 'sqlite', url: `sqlite://${absolute}`, path: absolute }
}
