import type { Cache } from '../../cache/cache.js'
import { expireDeadLeases } from '../../cache/leases/expire-leases.js'
import { findDeadLeases } from '../../cache/leases/find-dead-leases.js'
import { saveNode } from '../../cache/save-node.js'
import { formatCount } from '../../model/format-count.js'
import type { Lease, PlacedLease } from '../../model/lease.js'
import { checkProcess } from '../../platform/processes.js'
import type { PodSightings } from './pod-sightings.js'

const HEARTBEAT_MS = 10_000
const LEASES_MS = 30_000
const SWEEP_MS = 600_000

/** The work that an agent does unprompted. */
export interface NodeWatch {
  /** Whether the record accepted the last report. */
  readonly isReported: () => boolean
  /** Stops the work and records that the agent is gone. */
  stop(): Promise<void>
}

/** Everything that the watch needs. */
interface WatchOptions {
  readonly cache: Cache
  readonly url: string
  readonly forgetNodesAfterMs: number | undefined
  /** Default: nothing is known of pods. */
  readonly pods?: PodSightings | undefined
  /** Called with this node's leases after those of live holders were renewed. */
  readonly reconcile?: ((leases: readonly PlacedLease[]) => Promise<void>) | undefined
  readonly note: (sentence: string) => void
}

/**
 * Reports this node to the record every 10 s. Every 30 s, renews the leases of live holders and ends those of dead
 * ones. Occasionally sweeps the leases that no node looks after any more, because their nodes are gone. If the record
 * does not answer, tells `note` and retries.
 */
export async function watchNode(options: WatchOptions): Promise<NodeWatch> {
  const { cache, url, note } = options
  let reportedAtMs = Number.NEGATIVE_INFINITY
  const report = async () => {
    await saveNode(cache, { url, seenAtMs: cache.nowMs() })
    reportedAtMs = performance.now()
  }
  await report() // listen only once other nodes can find this one
  const stops = [
    repeat(HEARTBEAT_MS, report, note),
    repeat(LEASES_MS, () => renewLeases(cache, options), note),
    repeat(SWEEP_MS, () => sweep(cache, options.forgetNodesAfterMs, note), note),
  ]
  return {
    isReported: () => performance.now() - reportedAtMs < 1.5 * HEARTBEAT_MS,
    async stop() {
      await Promise.all(stops.map((stop) => stop()))
      await saveNode(cache, null)
    },
  }
}

/** Renews the leases on this node whose holders are visibly alive; ends those whose holders are dead. */
export async function renewLeases(
  cache: Cache,
  { pods, reconcile }: Pick<WatchOptions, 'pods' | 'reconcile'>,
): Promise<void> {
  pods?.look(cache.nowMs())
  const judgePod = (lease: Lease) => pods?.judge(lease, cache.nowMs())
  await expireDeadLeases(cache, { asksSlurm: true, isPodGone: (lease) => judgePod(lease) === 'gone' })
  const nowMs = cache.nowMs()
  const leases = await cache.record.listLeases({ node: cache.node })
  for (const lease of leases) {
    if (nowMs - lease.renewedAtMs < renewAfterMs(lease)) continue
    if (!isSeenAlive(lease) && judgePod(lease) !== 'alive') continue
    await cache.record.renewLease(lease.leaseId, chooseEnd(lease, nowMs), nowMs)
  }
  await reconcile?.(leases) // last: a volume that fails must not keep live holders from their renewal
}

/** A pod keeps its copy for as long as it runs, so the time it asked for begins again. */
function chooseEnd({ holder, expiresAtMs, renewedAtMs }: Lease, nowMs: number): number | null {
  return holder.kind === 'pod' && expiresAtMs !== null ? nowMs + (expiresAtMs - renewedAtMs) : expiresAtMs
}

/** Age at which a lease is renewed, in ms. Silent processes have a day, so more frequent writes would gain nothing. */
const RENEW_AFTER_MS = 600_000

/** A pod may have asked for a shorter time. */
function renewAfterMs({ holder, expiresAtMs, renewedAtMs }: Lease): number {
  if (holder.kind !== 'pod' || expiresAtMs === null) return RENEW_AFTER_MS
  return Math.min(RENEW_AFTER_MS, (expiresAtMs - renewedAtMs) / 2)
}

function isSeenAlive({ holder }: Lease): boolean {
  return holder.kind === 'process' && checkProcess(holder, 0) === 'alive'
}

/** Ends leases on any node whose holders have been silent too long, and forgets nodes after the configured time. */
export async function sweep(
  cache: Pick<Cache, 'record' | 'node' | 'nowMs'>,
  forgetNodesAfterMs: number | undefined,
  note: (sentence: string) => void,
): Promise<void> {
  const { record } = cache
  const nowMs = cache.nowMs()
  const leases = await record.listLeases({})
  await record.expireLeases(findDeadLeases(leases, { checkProcess, slurmJobs: undefined, nowMs }), nowMs)
  if (forgetNodesAfterMs === undefined) return
  for (const entry of await record.listNodes()) {
    const silentMs = nowMs - Math.max(entry.seenAtMs, entry.agent?.seenAtMs ?? 0)
    if (entry.node === cache.node || silentMs < forgetNodesAfterMs) continue
    const days = Math.floor(silentMs / 86_400_000)
    const copies = await record.forgetNode(
      entry.node,
      `node ${entry.node} silent for ${formatCount(days, 'day')}`,
      nowMs,
    )
    note(
      `forgot node ${entry.node} with ${formatCount(copies.length, 'copy', 'copies')}: silent for ${formatCount(days, 'day')}`,
    )
  }
}

function repeat(
  intervalMs: number,
  work: () => Promise<void>,
  note: (sentence: string) => void,
): () => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  let isBusy = false
  const timer = setInterval(() => {
    if (isBusy) return
    isBusy = true
    running = work()
      .catch((error: unknown) => note(error instanceof Error ? error.message : String(error)))
      .finally(() => {
        isBusy = false
      })
  }, intervalMs)
  return async () => {
    clearInterval(timer)
    await running
  }
}
