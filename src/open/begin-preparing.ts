import type { NodeSurroundings } from '../cache/api/node-api.js'
import { DscError, isDscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import { planPause } from '../platform/plan-pause.js'
import { pause } from '../platform/poll.js'
import { identifyProcess } from '../platform/processes.js'
import { type SeenCache, seeCache } from './seen-cache.js'

/** A failed download is retried until the feed ends. */
const PACE = { firstMs: 2000, longestMs: 60_000, patienceMs: Number.POSITIVE_INFINITY }

/** A dataset that is being prepared on this node, leased to this process. */
export interface Preparing {
  readonly cache: SeenCache
  readonly dataset: Dataset
  /** The copy, once it is ready. */
  readonly prepared: Promise<Copy>
  /** Notes that a sample was read during the download: from the first on, the task no longer waits. */
  noteRead(): void
  /** From now on, reports failures that may pass, such as an unreachable source, and retries. */
  keepTrying(): void
  /** Stops all work under way and ends the lease; if the process dies first, the lease ends as well. */
  release(): Promise<void>
}

/** Starts to prepare a dataset on this node, or to wait for the process that already does. */
export async function beginPreparing(
  context: NodeSurroundings,
  target: string,
  { isReadWhileComing }: { readonly isReadWhileComing: boolean },
): Promise<Preparing> {
  const holder = identifyProcess(process.pid)
  if (holder === undefined) throw new DscError('USAGE', 'cannot read /proc: a feed needs Linux')
  const [{ identifyCaller }, { findOwnTask }, { resolveDataset }, { reportProgress }] = await Promise.all([
    import('../cache/leases/identify-caller.js'),
    import('../cache/leases/find-own-task.js'),
    import('../cache/names/resolve-dataset.js'),
    import('../cache/prepare/report-progress.js'),
  ])
  const dataset = await resolveDataset(context, target)
  const api = await context.openApi()
  const cache = await seeCache(context)
  const caller = identifyCaller({
    environment: context.environment,
    isOwnProcess: true,
    shares: (await context.config()).cache.policy.shares,
  })
  const task = await findOwnTask(caller, { record: cache.record, node: (await context.config()).node })
  const request = {
    dataset,
    lease: { task, holder, expiresAtMs: null, parties: caller.parties },
    isRefresh: false,
    mayWait: true,
  }
  const stop = new AbortController()
  const beganMs = performance.now()
  const firstRead = Promise.withResolvers<number>()
  const options = {
    signal: AbortSignal.any([context.signal, stop.signal]),
    firstRead: isReadWhileComing ? firstRead.promise : undefined,
    onProgress: reportProgress(context.report, dataset.name, context.nowMs),
  }
  let leaseId: string | undefined
  let mayRetry = false
  const prepare = async (): Promise<Copy> => {
    for (let attempts = 1; ; attempts++) {
      try {
        const found = await api.prepare(request, options)
        leaseId = found.leaseId
        return found.copy
      } catch (error) {
        const mayPass = isDscError(error) && error.isRetryable && !options.signal.aborted
        if (!mayRetry || !mayPass) throw error
        context.report.note(`dsc: ${dataset.name}: ${error.message}; it is tried again`)
        await pause(
          planPause({ attempts, elapsedMs: 0, random: Math.random() }, PACE) ?? PACE.longestMs,
          options.signal,
        )
      }
    }
  }
  const prepared = prepare()
  prepared.catch(() => {}) // the caller that awaits it gets the error
  return {
    cache,
    dataset,
    prepared,
    noteRead: () => firstRead.resolve(Math.round(performance.now() - beganMs)),
    keepTrying: () => {
      mayRetry = true
    },
    async release() {
      stop.abort('the end of the feed')
      await prepared.catch(() => {})
      if (leaseId !== undefined) await cache.record.releaseUses({ leaseId }, context.nowMs())
      leaseId = undefined
    },
  }
}
