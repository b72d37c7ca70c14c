import { type LeaseHolder, type LeaseRequest, MAX_LEASE_MS } from '../../model/lease.js'
import type { Peer } from '../../platform/peer-credentials.js'
import { identifyProcess } from '../../platform/processes.js'
import { tryReadFile } from '../../platform/try-read-file.js'

/** More ancestors than this are nobody's. */
const MAX_STEPS = 64
/** How long a lease lasts whose process cannot be seen from here: as long as that of a task. */
const UNSEEN_MS = 24 * 3_600_000

/** The part of `/proc/<pid>/status` that every user may read. */
interface Status {
  readonly parentPid: number
  readonly uid: number
  /** The pid as the process itself sees it. */
  readonly innerPid: number
}

/**
 * Judges the holder that a user at the door names. A process is looked for among the peer and its ancestors, by the pid
 * that the peer sees, so that a lease of a job in a container ends with that job. One that cannot be seen from here, or
 * belongs to another user, becomes a task with an end: what cannot be seen is never taken for dead.
 */
export function locateHolder(
  lease: LeaseRequest,
  {
    peer,
    userId,
    nowMs,
  }: { readonly peer: Peer | undefined; readonly userId: number; readonly nowMs: number },
): LeaseRequest {
  const { holder } = lease
  if (holder.kind !== 'process') {
    // Where nobody can ask Slurm, a job that a user invented would never end.
    const latestMs = nowMs + MAX_LEASE_MS
    const expiresAtMs = userId === 0 ? lease.expiresAtMs : (lease.expiresAtMs ?? latestMs)
    return { ...lease, holder: { ...holder, userId }, expiresAtMs }
  }
  const pid = peer && findAncestor(peer, holder.pid)
  const found = pid === undefined ? undefined : identifyProcess(pid)
  if (found) return { ...lease, holder: { ...found, userId } }
  return { ...lease, holder: { kind: 'ttl', userId }, expiresAtMs: nowMs + UNSEEN_MS }
}

/** The peer or the ancestor of it that sees itself as `innerPid`. */
function findAncestor(peer: Peer, innerPid: number): number | undefined {
  let pid = peer.pid
  for (let step = 0; step < MAX_STEPS && pid > 0; step++) {
    const status = readStatus(pid)
    if (status === undefined || (peer.uid !== 0 && status.uid !== peer.uid)) return undefined
    if (status.innerPid === innerPid) return pid
    pid = status.parentPid
  }
  return undefined
}

/** The child of the peer, of the same user, that sees itself as `innerPid`: the command that `dsc run` has started. */
export function locateChild(
  peer: Peer | undefined,
  innerPid: number,
  { userId, listPids }: { readonly userId: number; readonly listPids: () => readonly number[] },
): LeaseHolder | undefined {
  if (peer === undefined) return undefined
  const pid = listPids().find((candidate) => {
    const status = readStatus(candidate)
    return status?.parentPid === peer.pid && status.innerPid === innerPid && status.uid === peer.uid
  })
  const found = pid === undefined ? undefined : identifyProcess(pid)
  return found && { ...found, userId }
}

function readStatus(pid: number): Status | undefined {
  const text = tryReadFile(`/proc/${pid}/status`)
  if (text === undefined) return undefined
  const numbersOf = (name: string) =>
    new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(text)?.[1]?.trim().split(/\s+/).map(Number) ?? []
  return {
    parentPid: numbersOf('PPid')[0] ?? 0,
    uid: numbersOf('Uid')[0] ?? -1,
    innerPid: numbersOf('NSpid').at(-1) ?? pid,
  }
}
