import type { Config } from '../config/config.js'
import { placeUserConfig } from '../config/find-config-file.js'
import { isDscError } from '../failure/dsc-error.js'
import { redactUrl } from '../failure/redact.js'
import { isRefused } from '../platform/disk-failure.js'
import { findHomeDirectory } from '../platform/this-user.js'
import { findOtherRecord } from './own-record.js'

/**
 * Warns that the record in use is not the one that governs the cache, and says what to do. Undefined if it is, if this
 * user cannot tell, or if the record was named for this command alone.
 */
export function describeOtherRecord(config: Config): string | undefined {
  const { record, cache, origins } = config
  if (origins.record?.kind === 'flag' || origins.record?.kind === 'environment') return undefined
  const other = findReadable(() => findOtherRecord(cache.root, record))
  if (other === undefined) return undefined
  return `this is what the record ${redactUrl(record.url)} knows, but ${cache.root} is governed by ${other}; to see that: ${describeRemedy(config, other)}`
}

function findReadable<Found>(find: () => Found): Found | undefined {
  try {
    return find()
  } catch (error) {
    if (isDscError(error, 'CACHE_ROOT_INVALID') || isRefused(error)) return undefined
    throw error
  }
}

/** The setting or command after which `record`, which governs the cache, is the one that counts. */
export function describeRemedy({ filePath, cache }: Config, record: string): string {
  if (filePath !== undefined) return `set record: ${record} in ${filePath}`
  const path = placeUserConfig({ environment: process.env, homeDirectory: findHomeDirectory() })
  return `dsc init --config ${path} --cache-root ${cache.root}`
}
