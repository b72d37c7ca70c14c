import { nameRecord, readCacheIdentity } from './cache/cache-identity.js'
import { addUse } from './cache/leases/add-use.js'
import { type Caller, chooseHolder } from './cache/leases/choose-holder.js'
import { identifyCaller } from './cache/leases/identify-caller.js'
import { takeReadyCopy } from './cache/leases/take-ready-copy.js'
import { requireOneOwner } from './cache/require-one-owner.js'
import { type ReadyWords, readReadyWords } from './cli/arguments/ready-words.js'
import { printReady } from './cli/output/print-ready.js'
import type { Config, RecordLocation } from './config/config.js'
import { findDoor } from './config/find-door.js'
import { loadConfig } from './config/load-config.js'
import { openOrClose } from './failure/closers.js'
import { parseLeaseTime } from './model/lease.js'
import { becomeOwner } from './platform/become-owner.js'
import { readMachine } from './platform/machine-identity.js'
import { findHomeDirectory } from './platform/this-user.js'
import { judgeNodeClaim } from './policy/judge-node-claim.js'
import type { RecordStore } from './records/contract/record-store.js'

/**
 * The path that every job takes every time: `dsc prepare <declared dataset>` whose copy is ready. It is bundled
 * into one file and loads neither commander nor anything that stages, so that it takes about as long as opening
 * the record (`npm run bench -- warm`). False: it is not that simple, and nothing was done that the
 * whole program would not do again; every failure is left to the whole program, too. `config`: the file
 * in effect, which warm-door.ts has found.
 */
export async function prepareIfReady(
  argv: readonly string[],
  from: { readonly version: string; readonly config: string | undefined },
): Promise<boolean> {
  try {
    return await takeAndReport(argv, from)
  } catch {
    return false
  }
}

async function takeAndReport(
  argv: readonly string[],
  { version, config: found }: Parameters<typeof prepareIfReady>[1],
): Promise<boolean> {
  if (process.env.DSC_LOG) return false // there would be nothing of it in the log
  const values = readReadyWords(argv)
  if (values === undefined) return false
  const { name } = values
  const config = await loadConfig({
    explicitPath: values.config ?? found,
    environment: process.env,
    workingDirectory: process.cwd(),
    homeDirectory: findHomeDirectory(),
    version,
  })
  // The whole program says which file it ignores, and asks at the door if warm-door.ts has not.
  if (config.ignoredFile || findDoor(config) !== undefined) return false
  const { datasets, record: location, node, cache } = config
  requireOneOwner(cache.root, location)
  becomeOwner(cache.root, { isForCommand: false })
  const declared = datasets.find((dataset) => dataset.name === name)
  const opening = openExistingRecord(location)
  opening.catch(() => {}) // it is awaited below
  const { caller, cacheId, machine, recordName } = await openOrClose(async (closers) => {
    closers.add(async () => (await opening.catch(() => undefined))?.record.close()) // it keeps the process alive
    return findAsker(values, cache)
  })
  const opened = await opening
  if (opened === undefined) return false
  const { record } = opened
  const nowMs = () => record.nowMs()
  let isDone = false
  try {
    const dataset = declared ?? (await record.findDataset(name))
    if (dataset === undefined) return false
    const lease = chooseHolder(caller, nowMs())
    // Another cache under this node's name, or another name or folder for this cache: the whole program says so.
    if (typeof cacheId !== 'string' || recordName !== nameRecord(location, cache.root)) return false
    const claim = { node, cacheRoot: cache.root, identity: { cacheId, machine } }
    const nodes = await record.listNodes()
    if (judgeNodeClaim(claim, nodes).outcome !== 'ours') return false
    if (nodes.find((entry) => entry.node === node)?.cacheRoot !== cache.root) return false
    const ready = await takeReadyCopy({ record, node, nowMs }, { dataset, lease })
    if (ready.outcome !== 'ready') return false
    await addUse({ record, nowMs }, { copy: ready.copy, lease, wait: { readyMs: 0 } })
    printReady({ ...ready, isStagedHere: false, lease }, values)
    isDone = true
    return true
  } finally {
    if (!isDone || !opened.mayStayOpen) await record.close()
  }
}

/** Finds the caller and their cache. Throws for an invalid duration. */
function findAsker(values: ReadyWords, { root, policy }: Pick<Config['cache'], 'root' | 'policy'>) {
  const caller = identifyAs(values, policy.shares)
  const identity = readCacheIdentity(root)
  return { caller, cacheId: identity?.id, recordName: identity?.record, machine: readMachine() }
}

function identifyAs({ task, ttl }: ReadyWords, shares: Config['cache']['policy']['shares']): Caller {
  const ttlMs = ttl === undefined ? undefined : parseLeaseTime(ttl)
  return identifyCaller({ environment: process.env, task, shares, ttlMs })
}

interface OpenedRecord {
  readonly record: RecordStore
  /** The process may end without closing it. */
  readonly mayStayOpen: boolean
}

/** The record if it is there, answers at once, and needs no migration. */
async function openExistingRecord(location: RecordLocation): Promise<OpenedRecord | undefined> {
  if (location.kind === 'sqlite') {
    const { mayStayOpen, openExistingSqliteRecord } = await import('./records/sqlite/record-store.js')
    const record = openExistingSqliteRecord(location.path)
    return record && { record, mayStayOpen: mayStayOpen(location.path) }
  }
  const { openPostgresRecord } = await import('./records/postgres/record-store.js')
  const record = await openPostgresRecord(location.url, { patienceMs: 0, connections: 1 })
  return { record, mayStayOpen: false }
}
