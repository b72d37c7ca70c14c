import { existsSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { identityFile } from '../../cache/cache-layout.js'
import type { Config } from '../../config/config.js'
import { isDscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { readDiskUsage } from '../../platform/disk-usage.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import type { CliContext } from '../context.js'
import { type Check, errorCodeOf, failed, ok, skipped, warning } from './check.js'
import { checkCacheRoot, checkFreeSpace, checkInodes } from './check-cache-root.js'
import { checkClocks, checkSources } from './check-sources.js'

/** How long to wait for the record, in ms: a server that is away for longer is what the user came to find. */
const RECORD_PATIENCE_MS = 5000

/** Runs every check, in the order in which a new user meets the parts. */
export async function runChecks(context: CliContext): Promise<Check[]> {
  const checks: Check[] = [ok('node', process.versions.node)]
  let config: Config
  try {
    config = await context.config()
  } catch (error) {
    if (isDscError(error, 'SERVICE_UNREACHABLE'))
      return [...checks, failed('door', error.message, error.hint)]
    if (!isDscError(error, 'CONFIG_INVALID')) throw error
    return [
      ...checks,
      failed('configuration', error.message, error.hint),
      skipped('cache, record and sources', 'they need a configuration without mistakes'),
    ]
  }
  checks.push(checkConfiguration(config))
  if (config.door !== undefined) return [...checks, ...(await checkDoor(config))]
  checks.push(...(await checkCacheRoot(config)))
  // A server that is away is waited for once.
  let opening: Promise<RecordStore> | undefined
  const openRecord = () => {
    opening ??= context.openRecord({ patienceMs: RECORD_PATIENCE_MS })
    return opening
  }
  checks.push(...(await checkCluster(context, config)))
  const { checkRecord } = await import('./check-record.js')
  checks.push(...(await checkRecord(config.record, openRecord)))
  checks.push(...(await checkOpening({ ...context, openRecord }, config)))
  const { checkAgents, checkCertificate } = await import('./check-agents.js')
  checks.push(...(await checkCertificate(config)))
  checks.push(...(await checkAgents(config, openRecord, context.signal)))
  const datasets = [...config.datasets, ...(await findAddedDatasets({ ...context, openRecord }, config))]
  checks.push(...(await checkClocks(datasets, context)))
  checks.push(...(await checkSources(datasets, context.openSource, context.signal)))
  return checks
}

/** Checks the cluster in a pod of agents: it alone sees kubelet's folder. */
async function checkCluster({ environment, signal }: CliContext, config: Config): Promise<readonly Check[]> {
  if (!environment.KUBERNETES_SERVICE_HOST || !existsSync(join(config.csi.kubelet, 'pods'))) return []
  const [{ findApiServer }, { checkKubernetes }] = await Promise.all([
    import('../../agent/csi/api-server.js'),
    import('./check-kubernetes.js'),
  ])
  const api = findApiServer(environment, signal)
  return api ? checkKubernetes(config, api) : []
}

/** Opens the cache as `dsc prepare` does, if there is one to open. A record that does not open has its own check. */
async function checkOpening(context: CliContext, { node, cache }: Config): Promise<readonly Check[]> {
  try {
    const record = await context.openRecord()
    const copies = await record.listCopies({ node, states: ['ready'] }, context.nowMs())
    if (copies.length === 0 && !existsSync(identityFile(cache.root))) return []
    await context.openCache()
    return [ok('cache', `${cache.root} is that of ${node} in the record`)]
  } catch (error) {
    if (!isDscError(error)) throw error
    return isDscError(error, 'CACHE_ROOT_INVALID', 'NODE_TAKEN')
      ? [failed('cache', error.message, error.hint)]
      : []
  }
}

function checkConfiguration({ filePath, ignoredFile }: Config): Check {
  const found = filePath ?? 'no dsc.yaml, defaults for one user'
  if (ignoredFile === undefined) return ok('configuration', found)
  const { path, reason } = ignoredFile
  return warning('configuration', `${found}; ignoring ${path}: ${reason}`, `to use it: --config ${path}`)
}

/** Datasets from `dsc dataset add`. A record that does not open has its own check. */
async function findAddedDatasets(context: CliContext, config: Config): Promise<readonly Dataset[]> {
  try {
    const added = await (await context.openRecord()).listDatasets()
    return added.filter(({ name }) => !config.datasets.some((declared) => declared.name === name))
  } catch (error) {
    if (!isDscError(error)) throw error
    return []
  }
}

/**
 * Checks what a user of the node's service needs: its answer, which brought this configuration, and a cache that they
 * can read. The record and the sources are the service's to reach.
 */
async function checkDoor({ door, node, cache, datasets }: Config): Promise<Check[]> {
  const { root, policy } = cache
  const answered = ok('door', `the service of ${node} answers at ${door?.path}`)
  try {
    await access(root, constants.X_OK)
  } catch (error) {
    const problem = `${root}: cannot enter it: ${errorCodeOf(error)}`
    return [answered, failed('cache root', problem, `ask the owner of the service to run chmod a+rx ${root}`)]
  }
  const disk = await readDiskUsage(root)
  return [
    answered,
    ok('cache root', `${root} belongs to the service, and can be read`),
    checkFreeSpace(disk, policy.minFreeBytes ?? 0),
    checkInodes(disk),
    ok('datasets', `${datasets.length} declared by the service`),
  ]
}
