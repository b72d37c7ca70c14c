import type { LeaseHolder, LeaseRequest, ProcessHolder } from '../../model/lease.js'

/** Facts about who a call works for. */
export interface Caller {
  /** `--task`, if given. */
  readonly task: string | undefined
  readonly ttlMs: number
  /** SLURM_JOB_ID, if the call runs in a job. */
  readonly slurmJobId: string | undefined
  /** Uid of the pod, if the call runs in one. */
  readonly podUid: string | undefined
  readonly user: string
  /** As in `LeaseRequest`. */
  readonly parties: readonly string[]
  /** Finds the process that called `dsc`, or dsc itself if it stays (`dsc run`); takes milliseconds. */
  readonly findProcess: () => ProcessHolder | undefined
}

/**
 * Decides who holds a lease and until when. First match wins:
 *
 * | the call …               | holder        | ends                                             |
 * |--------------------------|---------------|--------------------------------------------------|
 * | names a `--task`         | that task     | after `--ttl`, or released                       |
 * | runs in a Slurm job      | the job       | when squeue no longer lists it, or released      |
 * | runs in a pod            | the pod       | after `--ttl` unless an agent sees it, or released |
 * | has a calling process    | that process  | when the process ends, or released               |
 * | has lost its caller      | no process    | after `--ttl`, or released                       |
 */
export function chooseHolder(caller: Caller, nowMs: number): LeaseRequest & Pick<Caller, 'parties'> {
  return { ...chooseLease(caller, nowMs), parties: caller.parties }
}

/** The same without the parties that the call works for. */
export function chooseLease(caller: Caller, nowMs: number): LeaseRequest {
  const untilTtlMs = nowMs + caller.ttlMs
  if (caller.task !== undefined) return lease(caller.task, { kind: 'ttl' }, untilTtlMs)
  if (caller.slurmJobId) {
    return lease(`slurm:${caller.slurmJobId}`, { kind: 'slurm', jobId: caller.slurmJobId }, null)
  }
  if (caller.podUid) return lease(`pod:${caller.podUid}`, { kind: 'pod', uid: caller.podUid }, untilTtlMs)
  const found = caller.findProcess()
  if (found) return lease(`${caller.user}@${found.host}:${found.pid}`, found, null)
  return lease(`${caller.user}@unknown`, { kind: 'ttl' }, untilTtlMs)
}

function lease(task: string, holder: LeaseHolder, expiresAtMs: number | null): LeaseRequest {
  return { task, holder, expiresAtMs }
}
