import { existsSync, readFileSync } from 'node:fs'
import type { ClusterApi } from './agent/calls/cluster-api.js'
import type { NodeSurroundings } from './cache/api/node-api.js'
import type { Cache } from './cache/cache.js'
import { requireOneOwner } from './cache/require-one-owner.js'
import type { RecordOptions } from './cache/surroundings.js'
import { findKept, findOwnAccess, openSource } from './compose-sources.js'
import type { Config, RecordLocation } from './config/config.js'
import { findDoor } from './config/find-door.js'
import type { Overrides } from './config/resolve-settings.js'
import { DscError } from './failure/dsc-error.js'
import { logPhase } from './log/log.js'
import type { Dataset } from './model/dataset.js'
import { becomeOwner } from './platform/become-owner.js'
import { readMachine } from './platform/machine-identity.js'
import { readableLikeFolder } from './platform/shared-folder.js'
import { findHomeDirectory } from './platform/this-user.js'
import type { RecordStore } from './records/contract/record-store.js'
import type { SqlDatabase } from './records/database/sql-database.js'
import type { StagingPlan } from './sources/source.js'

/** Everything that the configuration decides. `close` closes what was opened once. */
interface Composed extends Omit<NodeSurroundings, 'report' | 'signal' | 'environment'> {
  readonly config: (overrides?: Overrides) => Promise<Config>
  readonly reopenRecord: () => Promise<RecordStore>
  readonly openCluster: () => Promise<ClusterApi>
  /** Reads an argument that names a record. */
  readonly locateRecord: (raw: string) => Promise<RecordLocation>
  readonly openDatabase: (raw: string, options: { readonly mustExist: boolean }) => Promise<SqlDatabase>
  close(): Promise<void>
}

/** Options of `compose`: callbacks for notes, and how far to go. */
interface ComposeOptions {
  /** Hears of a dsc.yaml that is not obeyed. */
  readonly onIgnoredFile?: (ignored: NonNullable<Config['ignoredFile']>) => void
  /** Hears of a server or service that is waited for. */
  readonly onRecordAway?: (sentence: string) => void
  /** Called when the user's own cache was deleted, and a new one begins. */
  readonly onBegunAnew?: (sentence: string) => void
  /** Called at the end if the record that was read is not the one that governs the cache. */
  readonly onOtherRecord?: (sentence: string) => void
  /** Whether the node's service may answer instead, where it has a door and no configuration of one's own counts. */
  readonly isDoorUsed?: boolean
  /** Whether a command of the caller's is started later, with the caller's rights. */
  readonly startsCommand?: boolean
  readonly signal?: AbortSignal
}

/**
 * Puts dsc together for this process: the configuration that counts here, and the record, cache and sources that it
 * names, or the door of the node's service. The only place that names concrete adapters; loads them when they are asked
 * for.
 */
export function compose(configPath: string | undefined, options: ComposeOptions = {}): Composed {
  const opened: RecordStore[] = []
  const doorOf = (own: Config) => (options.isDoorUsed ? findDoor(own) : undefined)
  const ownConfig = once(async (overrides: Overrides = {}) => {
    const { loadConfig } = await import('./config/load-config.js')
    const loaded = await loadConfig({
      explicitPath: configPath,
      environment: process.env,
      workingDirectory: process.cwd(),
      homeDirectory: findHomeDirectory(),
      version: readVersion(),
      overrides,
    })
    if (loaded.ignoredFile) options.onIgnoredFile?.(loaded.ignoredFile)
    // At the door root asks as root.
    if (!doorOf(loaded)) becomeOwner(loaded.cache.root, { isForCommand: options.startsCommand === true })
    return loaded
  })
  const knock = once(async (overrides?: Overrides) => {
    const path = doorOf(await ownConfig(overrides))
    if (path === undefined) return undefined
    const { knock: knockAt } = await import('./agent/door/knock.js')
    return knockAt(path, { onAway: options.onRecordAway, signal: options.signal, findOwnAccess })
  })
  const config = once(async (overrides?: Overrides) => {
    const door = await knock(overrides)
    const own = await ownConfig(overrides)
    return door ? door.seeConfig(own) : { ...own, door: undefined }
  })
  const openRecord = once(async (asked: RecordOptions = {}) => {
    const record = await openAgain(asked)
    opened.push(record)
    return record
  })
  const openAgain = async (asked: RecordOptions = {}) => {
    const door = await knock()
    if (door) return door.openRecord()
    const { record: location, cache } = await config()
    requireOneOwner(cache.root, location)
    readableLikeFolder(cache.root)
    const ways = { ...asked, onAway: options.onRecordAway }
    return logPhase('opening the record', () => openRecordAt(location, ways))
  }
  let isCacheAsked = false
  const openOwnCache = once(async () => {
    if (await knock()) throw behindDoor()
    isCacheAsked = true // which refuses another record
    return openCache(await config(), await openRecord(), options.onBegunAnew)
  })
  return {
    // Once the record is open its clock counts: on a cluster all nodes share it.
    nowMs: () => opened[0]?.nowMs() ?? Date.now(),
    config,
    openRecord,
    reopenRecord: openAgain,
    openCache: openOwnCache,
    openApi: async (record) => {
      const door = await knock()
      await openRecord() // from here on, the record's clock counts
      if (door) return door.createApi((await config()).stage)
      const cache = await openOwnCache()
      return (await import('./cache/api/node-api.js')).createOwnApi(record ? { ...cache, record } : cache)
    },
    openCluster: async () => {
      const door = await knock()
      if (door) return door.createCluster()
      const [{ createOwnCluster }, { readAgentAccess }] = await Promise.all([
        import('./agent/calls/cluster-api.js'),
        import('./agent/calls/agent-access.js'),
      ])
      return createOwnCluster(await openRecord(), await readAgentAccess(await config()))
    },
    askPasses: async (copyIds) => (await knock())?.askPasses(copyIds),
    openSource,
    locateRecord,
    openDatabase: openNamedDatabase,
    async close() {
      if (opened.length > 0 && !isCacheAsked && options.onOtherRecord && !(await knock())) {
        const sentence = (await import('./cache/other-record.js')).describeOtherRecord(await config())
        if (sentence) options.onOtherRecord(sentence)
      }
      for (const record of opened.splice(0)) await record.close()
    },
  }
}

function behindDoor(): DscError {
  return new DscError(
    'NOT_PERMITTED',
    'the cache of this node belongs to its service, which does not do this',
    {
      hint: 'run it as the user of the service, with its configuration',
    },
  )
}

async function locateRecord(raw: string): Promise<RecordLocation> {
  const { resolveRecord } = await import('./config/resolve-path.js')
  return resolveRecord(raw, { folder: process.cwd(), homeDirectory: findHomeDirectory() }, 'argument')
}

async function openNamedDatabase(
  raw: string,
  { mustExist }: { readonly mustExist: boolean },
): Promise<SqlDatabase> {
  const location = await locateRecord(raw)
  if (mustExist && location.kind === 'sqlite' && !existsSync(location.path)) {
    throw new DscError('RECORD_UNAVAILABLE', `there is no record at ${location.path}`, {
      hint: 'dsc config shows where the record is',
    })
  }
  return openDatabaseAt(location)
}

async function openRecordAt(
  location: RecordLocation,
  options: RecordOptions & { readonly onAway?: ((sentence: string) => void) | undefined } = {},
): Promise<RecordStore> {
  if (location.kind === 'postgres') {
    const { openPostgresRecord } = await import('./records/postgres/record-store.js')
    return openPostgresRecord(location.url, options)
  }
  const [{ openSqliteRecord }, { requireLocalFileSystem }] = await Promise.all([
    import('./records/sqlite/record-store.js'),
    import('./records/sqlite/require-local-file-system.js'),
  ])
  await requireLocalFileSystem(location.path)
  return openSqliteRecord(location.path)
}

/** The engine under a record, for moving whole records. */
async function openDatabaseAt(location: RecordLocation): Promise<SqlDatabase> {
  if (location.kind === 'postgres') {
    return (await import('./records/postgres/postgres-database.js')).openPostgresDatabase(location.url)
  }
  const { requireLocalFileSystem } = await import('./records/sqlite/require-local-file-system.js')
  await requireLocalFileSystem(location.path)
  return (await import('./records/sqlite/sqlite-database.js')).openSqliteDatabase(location.path)
}

async function openCache(
  config: Config,
  record: RecordStore,
  onBegunAnew?: (sentence: string) => void,
): Promise<Cache> {
  const { root, policy } = config.cache
  const { openCacheRoot } = await import('./cache/open-cache-root.js')
  const { closeRecord, requireOwnRecord } = await import('./cache/own-record.js')
  const { describeRemedy } = await import('./cache/other-record.js')
  const { requireFreeNode, requireOwnNode } = await import('./cache/claim-node.js')
  const { node } = config
  const machine = readMachine()
  const cacheId = await openCacheRoot(root, {
    hasCopies: async () => {
      await requireFreeNode(record, { node, cacheRoot: root, machine })
      if (!(await hasReadyCopies(record, node))) return false
      // One's own cache below the home folder is on no disk that could be missing: `rm -rf ~/.cache` deleted it.
      const isDeleted = config.origins['cache.root']?.kind === 'default' && !existsSync(root)
      if (isDeleted) onBegunAnew?.(`${root} was deleted: what it had is fetched again when it is asked for`)
      return !isDeleted
    },
  })
  const isKnown = async () => (await record.listNodes()).some(({ identity }) => identity?.cacheId === cacheId)
  await requireOwnRecord({
    root,
    location: config.record,
    isKnown,
    describeRemedy: (governing) => describeRemedy(config, governing),
  })
  const hasReaders = config.datasets.some(({ readers }) => readers)
  if (hasReaders || config.agent.door !== undefined) closeRecord(config.record) // at the door each sees their own
  const identity = { cacheId, machine }
  await requireOwnNode(record, { node, cacheRoot: root, identity })
  const { concurrency, stallTimeoutMs, maxRequests, bandwidthBytesPerSecond } = config.stage
  return {
    record,
    node,
    root,
    identity,
    policy,
    declared: config.datasets,
    nowMs: () => record.nowMs(),
    openSource,
    findKept,
    openStagingSource: config.record.kind === 'postgres' ? createStagingSource(config, record) : undefined,
    measureDisk: async () => (await import('./platform/disk-usage.js')).readDiskUsage(root),
    listSlurmJobs: async () => (await import('./cache/leases/slurm-queue.js')).listSlurmJobs(),
    historyMs: config.historyMs,
    transfer: {
      stallTimeoutMs,
      concurrency,
      hasOtherReaders: config.agent.door !== undefined,
    },
    nodeBudget: {
      maxRequests,
      bandwidthBytesPerSecond,
    },
  }
}

async function hasReadyCopies(record: RecordStore, node: string): Promise<boolean> {
  return (await record.listCopies({ node, states: ['ready'] }, record.nowMs())).length > 0
}

/** On a cluster a dataset is staged from other nodes where they have it. */
function createStagingSource(config: Config, record: RecordStore) {
  return async (dataset: Dataset, plan: StagingPlan) => {
    const { openPeerSource } = await import('./sources/peer/peer-source.js')
    const { TransferLeases } = await import('./cache/leases/transfer-lease.js')
    const { formatTransferTask } = await import('./model/lease.js')
    const { trashDirectory } = await import('./cache/cache-layout.js')
    const { readAgentAccess } = await import('./agent/calls/agent-access.js')
    return openPeerSource({
      dataset,
      plan,
      record,
      node: config.node,
      access: await readAgentAccess(config),
      trustsNodes: config.cluster.trustsNodes,
      openKeeper: () => new TransferLeases(record, formatTransferTask(config.node)),
      scratch: trashDirectory(config.cache.root),
      openOrigin: () => openSource(dataset),
    })
  }
}

/** Remembers the first promise that is kept: every part of a command sees the same thing. */
function once<Arguments extends unknown[], Value>(
  make: (...given: Arguments) => Promise<Value>,
): (...given: Arguments) => Promise<Value> {
  let made: Promise<Value> | undefined
  return (...given) => {
    made ??= make(...given).catch((error: unknown) => {
      made = undefined
      throw error
    })
    return made
  }
}

/** This version of dsc, as in package.json. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return String((manifest as { version: unknown }).version)
}
