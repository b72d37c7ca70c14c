import type { ProcessHolder } from '../../model/lease.js'
import type { Share } from '../../model/policy.js'
import { findPodUid } from '../../platform/pods.js'
import { identifyProcess, PROCESS_TREE } from '../../platform/processes.js'
import { findUserName } from '../../platform/this-user.js'
import { tryReadFile } from '../../platform/try-read-file.js'
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
  /** How the calling process is named. Default: so that a record knows it for good. */
  readonly identify?: (pid: number) => ProcessHolder | undefined
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
      const { isOwnProcess, identify = identifyProcess } = options
      const tree = { ...PROCESS_TREE, find: remember(PROCESS_TREE.find) }
      const pid = isOwnProcess ? process.pid : chooseCaller(process.pid, tree)
      return pid === undefined ? undefined : identify(pid)
    },
  }
}

/** Asks about each process once: an ancestor is looked at from several sides, and reading /proc takes 0.1 ms each time. */
function remember<Entry>(find: (pid: number) => Entry): (pid: number) => Entry {
  const found = new Map<number, Entry>()
  return (pid) => {
    const known = found.get(pid) ?? find(pid)
    found.set(pid, known)
    return known
  }
}

/** The pod's uid from the downward API (`POD_UID`), else from the cgroup or the mounts that kubelet makes. */
function findOwnPod(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  if (environment.POD_UID) return environment.POD_UID
  if (!environment.KUBERNETES_SERVICE_HOST) return undefined
  for (const file of ['/proc/self/cgroup', '/proc/self/mountinfo']) {
    const uid = findPodUid(tryReadFile(file) ?? '')
    if (uid !== undefined) return uid
  }
  return undefined
}
