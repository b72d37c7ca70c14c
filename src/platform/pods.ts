import { readdirSync, readlinkSync } from 'node:fs'
import { tryReadFile } from './try-read-file.js'

/** The first pid namespace of a machine always has this number (Linux' PROC_PID_INIT_INO). */
const FIRST_PID_NAMESPACE = 'pid:[4026531836]'

const UID = '[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}'
/** As cgroups have it, `pod<uid>` or `kubepods-pod<uid>.slice` with `_` for `-`; and mounts, `/pods/<uid>/etc-hosts`. */
const POD = new RegExp(`(?:pod|/pods/)(${UID})(?![0-9a-f])`)

/** The uid of the pod that a line of /proc/<pid>/cgroup or mountinfo belongs to; undefined: of none. */
export function findPodUid(text: string): string | undefined {
  return POD.exec(text)?.[1]?.replaceAll('_', '-')
}

/**
 * Uids of the pods that have a process on this machine, the pause process included: kubelet keeps it until the pod ends.
 * Undefined if not all processes can be seen from here: in a pid namespace of one's own, or where /proc hides others'
 * processes; also where no pod is seen at all, because then kubelet is elsewhere.
 */
export function listRunningPods(): ReadonlySet<string> | undefined {
  if (!seesAllProcesses()) return undefined
  const pods = new Set<string>()
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const uid = findPodUid(tryReadFile(`/proc/${pid}/cgroup`) ?? '')
    if (uid !== undefined) pods.add(uid)
  }
  return pods.size > 0 ? pods : undefined
}

function seesAllProcesses(): boolean {
  try {
    return readlinkSync('/proc/self/ns/pid') === FIRST_PID_NAMESPACE && Boolean(tryReadFile('/proc/1/cgroup'))
  } catch {
    return false
  }
}
