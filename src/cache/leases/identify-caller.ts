import { readFileSync } from 'node:fs'
import type { Share } from '../../model/policy.js'
import { findPodUid } from '../../platform/pods.js'
import { identifyProcess, PROCESS_TREE } from '../../platform/processes.js'
import { findUserName } from '../../platform/this-user.js'
import { chooseCaller } from './choose-caller.js'
import type { Caller } from './choose-holder.js'
import { findParties } from './find-parties.js'

/** Lifetime of a lease of `--task` or of a pod without renewal: a day. */
const DEFAULT_TTL_MS = 24 * 3_600_000

/**
 * Finds the caller: from the environment of Slurm or Kubernetes, else the process that receives this one's output.
 * `isOwnProcess` makes dsc itself the holder (`dsc run` stays as long as its command).
 */
export function identifyCaller(options: {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly task?: string | undefined
  readonly ttlMs?: number | undefined
  readonly isOwnProcess?: boolean
  /** Shares whose groups matter. */
  readonly shares?: readonly Share[] | undefined
}): Caller {
  const { environment } = options
  return {
    task: options.task,
    ttlMs: options.ttlMs ?? DEFAULT_TTL_MS,
    slurmJobId: environment.SLURM_JOB_ID || undefined,
    podUid: findOwnPod(environment),
    user: findUserName(environment),
    // At the door nobody asks for them: the kernel tells the service.
    get parties() {
      return findParties({ environment, shares: options.shares })
    },
    findProcess: () => {
      const pid = options.isOwnProcess ? process.pid : chooseCaller(process.pid, PROCESS_TREE)
      return pid === undefined ? undefined : identifyProcess(pid)
    },
  }
}

/** The pod's uid from the downward API (`POD_UID`), else from the cgroup or the mounts that kubelet makes. */
function findOwnPod(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  if (environment.POD_UID) return environment.POD_UID
  if (!environment.KUBERNETES_SERVICE_HOST) return undefined
  for (const file of ['/proc/self/cgroup', '/proc/self/mountinfo']) {
    try {
      const uid = findPodUid(readFileSync(file, 'utf8'))
      if (uid !== undefined) return uid
    } catch {
      // Not readable here; the next file may be.
    }
  }
  return undefined
}
