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
