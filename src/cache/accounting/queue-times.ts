/** When a job asked for a dataset on a node, and when it could read it, Unix epoch in ms. */
export interface LeaseTime {
  readonly dataset: string
  readonly askedAtMs: number
  readonly readAtMs: number
}

/** The time of a job on a node before its first trainer began to count. */
export interface QueueTime {
  /** Each dataset that it waited for, in ms; time in which several were staged side by side counts once. */
  readonly waits: readonly { readonly dataset: string; readonly ms: number }[]
  readonly totalMs: number
  /** When it had waited for the last of them; without a wait, when it first asked. */
  readonly endedAtMs: number
  /** When trainers began to count; infinite without a feed. */
  readonly fedSinceMs: number
}

/** Whether a lease was asked for before training, so that its wait is not among those that trainers told. */
export function isBefore({ askedAtMs }: LeaseTime, fedSinceMs: number): boolean {
  return askedAtMs < fedSinceMs
}

/** Computes the time in the queue from all leases of a job on a node. */
export function findQueueTime(leases: readonly LeaseTime[], fedSinceMs: number): QueueTime {
  const before = leases.filter((lease) => isBefore(lease, fedSinceMs))
  const waits: { dataset: string; ms: number }[] = []
  let countedUntilMs = 0
  for (const { dataset, askedAtMs, readAtMs } of before.toSorted((a, b) => a.readAtMs - b.readAtMs)) {
    if (readAtMs <= askedAtMs) continue
    const endMs = Math.min(readAtMs, fedSinceMs)
    waits.push({ dataset, ms: Math.max(0, endMs - Math.max(askedAtMs, countedUntilMs)) })
    countedUntilMs = Math.max(countedUntilMs, endMs)
  }
  const totalMs = waits.reduce((sum, { ms }) => sum + ms, 0)
  const endedAtMs = countedUntilMs || Math.min(fedSinceMs, ...before.map(({ askedAtMs }) => askedAtMs))
  return { waits, totalMs, endedAtMs, fedSinceMs }
}

/** The delay of a node before its trainers began to count, by its own queue and by those of other nodes. */
export interface QueueLead {
  /** For how long it waited for staging when all nodes could have begun, less what all waited then, in ms. */
  readonly waitedMs: number
  /** For how long its trainers began later because another node was in the queue, in ms. */
  readonly heldMs: number
  /** From when all nodes could have begun until its trainers did, in ms; negative if they did before. */
  readonly tookMs: number
}

/** Compares the queues of the nodes of a job. */
export function compareQueues(queues: readonly QueueTime[]): readonly QueueLead[] {
  const fromMs = Math.max(
    Math.min(...queues.map(({ endedAtMs }) => endedAtMs)),
    ...queues.map(({ endedAtMs, totalMs }) => endedAtMs - totalMs),
  )
  const readyAtMs = queues.map(({ endedAtMs }) => Math.max(endedAtMs, fromMs))
  const lastReadyAtMs = Math.max(...readyAtMs)
  const restsMs = queues.map(({ fedSinceMs }, at) => Math.max(0, fedSinceMs - readyAtMs[at]!))
  const shortestMs = Math.min(...restsMs)
  const own = queues.map(({ fedSinceMs, totalMs }, at) => {
    const heldMs = Math.min(lastReadyAtMs - readyAtMs[at]!, restsMs[at]! - shortestMs)
    return { heldMs, fedSinceMs, couldBeginAtMs: fedSinceMs - heldMs - totalMs }
  })
  const beginAtMs = Math.max(...own.map(({ couldBeginAtMs }) => couldBeginAtMs))
  const leads = own.map(({ heldMs, fedSinceMs }) => {
    const tookMs = fedSinceMs - beginAtMs
    return { heldMs, tookMs, waitedMs: Math.max(0, tookMs - heldMs) }
  })
  const leastMs = Math.min(...leads.map(({ waitedMs }) => waitedMs))
  return leads.map((each) => ({ ...each, waitedMs: each.waitedMs - leastMs }))
}
