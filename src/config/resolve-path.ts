import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DscError } from '../failure/dsc-error.js'
import { redactUrl } from '../failure/redact.js'
import type { RecordLocation } from './config.js'

/** What a path is relative to. */
export interface PathBase {
  /** Folder of the file (or working folder of the variable or flag) that holds the path. */
  readonly folder: string
  readonly homeDirectory: string
}

/** Makes a path absolute; `~/` is the home folder. */
export function resolvePath(raw: string, { folder, homeDirectory }: PathBase): string {
  if (raw === '~' || raw.startsWith('~/')) return join(homeDirectory, raw.slice(1))
  return resolve(folder, raw)
}

/** Makes a source absolute: a plain path becomes a file:// URL, any other source stays as it is. */
export function resolveSource(raw: string, base: PathBase): string {
  return /^[a-z0-9]+:/i.test(raw) ? raw : pathToFileURL(resolvePath(raw, base)).href
}

/** Reads where the record lives. `where` names the setting for the error. */
export function resolveRecord(raw: string, base: PathBase, where: string): RecordLocation {
  if (/^postgres(ql)?:\/\//.test(raw)) return { kind: 'postgres', url: raw }
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(raw)?.[1] ?? raw
  if (/^[a-z][a-z0-9+.-]+:/i.test(path)) {
    throw new DscError(
      'CONFIG_INVALID',
      `${where}: expected sqlite:///file, postgres://user@host/database or a file, found ${redactUrl(raw)}`,
    )
  }
  const absolute = resolvePath(path, base)
  return { kind: 'sqlite', url: `sqlite://${absolute}`, path: absolute }
}
