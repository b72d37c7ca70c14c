import type { describePrepared } from '../cache/prepare/describe-prepared.js'
import { atEnd } from '../failure/closers.js'
import { type CallOptions, openSurroundings } from './surroundings.js'

/** How to prepare a dataset, as for the command `dsc prepare`. */
export interface PrepareOptions extends CallOptions {
  /** The holder of the lease. Default: the Slurm job or pod this process runs in, else this process until it exits. */
  readonly task?: string
  /** How long the lease of a `task` or a pod lasts, in ms, from 1. Default a day. */
  readonly ttlMs?: number
  /** Look for a new version even if a copy is ready. Default false. */
  readonly refresh?: boolean
  /** Whether to wait if another process is staging the dataset, or to reject with STAGING_ELSEWHERE. Default true. */
  readonly wait?: boolean
  /** Receives events, as sentences for people. */
  readonly onNote?: (sentence: string) => void
  /** Receives the progress, as a line that replaces the previous one; undefined clears it. */
  readonly onProgress?: (line: string | undefined) => void
}

/** A dataset on this node's disk, leased: dsc does not evict it until it is released, or the lease's holder is gone. */
export interface PreparedDataset extends AsyncDisposable, Readonly<ReturnType<typeof describePrepared>> {
  /** Ends the lease. Ending it twice is no error. */
  release(): Promise<void>
}

/**
 * Stages a dataset on this node if needed, and leases it. `dataset` is a name, or the URL of a source. Rejects with a
 * DscError, whose `code` identifies the failure.
 */
export async function prepare(dataset: string, options: PrepareOptions = {}): Promise<PreparedDataset> {
  const [names, progress, caller, holder, description] = await Promise.all([
    import('../cache/names/resolve-dataset.js'),
    import('../cache/prepare/report-progress.js'),
    import('../cache/leases/identify-caller.js'),
    import('../cache/leases/choose-holder.js'),
    import('../cache/prepare/describe-prepared.js'),
  ])
  const { task, ttlMs, onNote = () => {}, onProgress = () => {} } = options
  const surroundings = openSurroundings(options, { note: onNote, warn: onNote, progress: onProgress })
  const { report, signal, environment, nowMs } = surroundings
  await using _ = atEnd(() => surroundings.close())
  const found = await names.resolveDataset(surroundings, dataset)
  const api = await surroundings.openApi()
  const { shares } = (await surroundings.config()).cache.policy
  const lease = holder.chooseHolder(
    caller.identifyCaller({ environment, task, ttlMs, isOwnProcess: true, shares }),
    nowMs(),
  )
  const prepared = await api.prepare(
    { dataset: found, lease, isRefresh: options.refresh ?? false, mayWait: options.wait ?? true },
    { signal, onProgress: progress.reportProgress(report, found.name, nowMs) },
  )
  report.progress(undefined)
  const release = () => releaseLease(prepared.leaseId, options.configPath)
  return {
    ...description.describePrepared(prepared, prepared.lease),
    release,
    [Symbol.asyncDispose]: release,
  }
}

/** Reopens the record: a job may use its dataset for days, and should not hold a connection that long. */
async function releaseLease(leaseId: string, configPath: string | undefined): Promise<void> {
  const surroundings = openSurroundings({ configPath })
  await using _ = atEnd(() => surroundings.close())
  const record = await surroundings.openRecord()
  await record.releaseUses({ leaseId }, surroundings.nowMs())
}
