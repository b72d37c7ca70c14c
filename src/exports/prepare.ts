import type { describePrepared } from '../cache/prepare/describe-prepared.js'
import { type CallOptions, openSurroundings } from './surroundings.js'

/** How a dataset is prepared, as by the command `dsc prepare`. */
export interface PrepareOptions extends CallOptions {
  /** Who uses the dataset. Default: the Slurm job or pod this process runs in, else this process while it lives. */
  readonly task?: string
  /** How long the lease of a `task` or a pod lasts, in ms, from 1. Default a day. */
  readonly ttlMs?: number
  /** Look for a new version even if a copy is ready. Default false. */
  readonly refresh?: boolean
  /** Whether to wait for another process that is staging the dataset, or to reject with STAGING_ELSEWHERE. Default true. */
  readonly wait?: boolean
  /** Hears what goes on, in sentences for people. */
  readonly onNote?: (sentence: string) => void
  /** Hears how far it is, as a line that replaces the one before it; undefined clears it. */
  readonly onProgress?: (line: string | undefined) => void
}

/** A dataset on this node's disk, leased: nothing evicts it until it is released, or the holder of the lease is gone. */
export interface PreparedDataset extends AsyncDisposable, Readonly<ReturnType<typeof describePrepared>> {
  /** Ends the lease. Doing it twice is no error. */
  release(): Promise<void>
}

/**
 * Stages a dataset on this node unless it is there, and leases it. `dataset` is a name, or the URL of a source.
 * Rejects with a DscError, whose `code` says what is wrong.
 */
export async function prepare(dataset: string, options: PrepareOptions = {}): Promise<PreparedDataset> {
  const [names, prepareRoom, progress, caller, holder, description] = await Promise.all([
    import('../cache/names/resolve-dataset.js'),
    import('../cache/prepare/prepare-dataset.js'),
    import('../cache/prepare/report-progress.js'),
    import('../cache/leases/identify-caller.js'),
    import('../cache/leases/choose-holder.js'),
    import('../cache/prepare/describe-prepared.js'),
  ])
  const { task, ttlMs, onNote = () => {}, onProgress = () => {} } = options
  const surroundings = openSurroundings(options, { note: onNote, warn: onNote, progress: onProgress })
  const { report, signal, environment, nowMs } = surroundings
  try {
    const found = await names.resolveDataset(surroundings, dataset)
    const cache = await surroundings.openCache()
    const lease = holder.chooseHolder(
      caller.identifyCaller({ environment, task, ttlMs, isOwnProcess: true, shares: cache.policy.shares }),
      nowMs(),
    )
    const prepared = await prepareRoom.prepareDataset(
      cache,
      { dataset: found, lease, isRefresh: options.refresh ?? false, mayWait: options.wait ?? true },
      { signal, onProgress: progress.reportProgress(report, found.name, nowMs) },
    )
    report.progress(undefined)
    const release = () => releaseLease(prepared.leaseId, options.configPath)
    return {
      ...description.describePrepared(prepared, lease),
      release,
      [Symbol.asyncDispose]: release,
    }
  } finally {
    await surroundings.close()
  }
}

/** Opens the record once more: a job may use its dataset for days, and holds no connection for so long. */
async function releaseLease(leaseId: string, configPath: string | undefined): Promise<void> {
  const surroundings = openSurroundings(configPath === undefined ? {} : { configPath })
  try {
    const record = await surroundings.openRecord()
    await record.releaseUses({ leaseId }, surroundings.nowMs())
  } finally {
    await surroundings.close()
  }
}
