import type { Config } from '../../config/config.js'
import { isDscError } from '../../failure/dsc-error.js'
import type { CliContext } from '../context.js'
import { type Check, failed, ok, skipped } from './check.js'
import { checkCacheRoot } from './check-cache-root.js'
import type { OpenRecord } from './check-record.js'
import { checkClocks, checkSources, type OpenSource } from './check-sources.js'

/** What `dsc doctor` needs from the adapters that only main.ts names. */
export interface DoctorProbes {
  readonly openRecord: OpenRecord
  readonly openSource: OpenSource
}

/** Runs every check, in the order in which a new user meets the parts. */
export async function runChecks(context: CliContext, probes: DoctorProbes): Promise<Check[]> {
  const checks: Check[] = [ok('node', process.versions.node)]
  let config: Config
  try {
    config = await context.config()
  } catch (error) {
    if (!isDscError(error, 'CONFIG_INVALID')) throw error
    return [
      ...checks,
      failed('configuration', error.message, error.hint),
      skipped('cache, record and sources', 'they need a configuration without mistakes'),
    ]
  }
  checks.push(ok('configuration', config.filePath ?? 'no dsc.yaml, defaults for one user'))
  checks.push(...(await checkCacheRoot(config)))
  const { checkRecord } = await import('./check-record.js')
  checks.push(...(await checkRecord(config.record, probes.openRecord)))
  checks.push(...(await checkClocks(config.datasets, context)))
  checks.push(...(await checkSources(config.datasets, probes.openSource, context.signal)))
  return checks
}
