import { realpathSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import type { RecordLocation } from '../config/config.js'
import { DscError, isDscError } from '../failure/dsc-error.js'
import { redactUrl } from '../failure/redact.js'
import { readRegularFile } from '../platform/regular-file.js'
import { identityFile, LAYOUT_VERSION } from './cache-layout.js'

/** Maximum size of the identity file, in bytes; it holds two short values. */
const MAX_IDENTITY_BYTES = 4096

/** Content of a cache root's identity file. */
interface CacheIdentity {
  readonly layout: unknown
  /** The random id of this cache; absent if the process that wrote the file was killed first. */
  readonly id?: unknown
  /** The record that governs the cache, as `nameRecord` names it; absent = the next one to open it. */
  readonly record?: unknown
}

/** Reads the identity of a cache root; undefined if it has none. Throws CACHE_ROOT_INVALID if it cannot be read. */
export function readCacheIdentity(root: string): CacheIdentity | undefined {
  let text: string
  try {
    text = readRegularFile(identityFile(root), { maxBytes: MAX_IDENTITY_BYTES })
  } catch (error) {
    if (isDscError(error)) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new DscError('CACHE_ROOT_INVALID', `cannot read ${identityFile(root)} (${code})`, {
      hint: 'dsc doctor',
      cause: error,
    })
  }
  try {
    return JSON.parse(text) as CacheIdentity
  } catch {
    return { layout: LAYOUT_VERSION }
  }
}

/** How a cache's identity file names the record that governs it: without secrets; relative if it lies in the root. */
export function nameRecord(location: RecordLocation, root: string): string {
  if (location.kind === 'postgres') return redactUrl(location.url)
  const within = relative(realOf(root), realOf(location.path))
  return within.startsWith('..') ? `sqlite://${realOf(location.path)}` : within
}

/** The path without links, as far as it exists. */
function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(realOf(parent), basename(path))
  }
}
