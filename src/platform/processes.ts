import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { uptime } from 'node:os'
import type { LeaseHolder, ProcessHolder } from '../model/lease.js'
import { readBootId } from './boot-id.js'
import { readMachine } from './machine-identity.js'
import { tryReadFile } from './try-read-file.js'

/** A running process as the kernel describes it. */
interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  /** Start time in clock ticks since boot. */
  readonly startTicks: string
  /** Arguments, separated by NUL, as in /proc/<pid>/cmdline; empty for kernel threads and zombies. */
  readonly commandLine: string
  /** A zombie has ended; only its exit status is left. */
  readonly isZombie: boolean
}

/** Finds a process by its pid; undefined if it does not exist (Linux's /proc). */
export function findProcess(pid: number): ProcessEntry | undefined {
  const stat = tryReadFile(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The command's name is in parentheses and may contain anything, so count fields from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    parentPid: Number(fields[1]),
    startTicks: String(fields[19]),
    commandLine: tryReadFile(`/proc/${pid}/cmdline`) ?? '',
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
  }
}

/** The process facts in /proc; only root sees everything about other users' processes. */
export const PROCESS_TREE = { find: findProcess, findExecutable, findStdoutPipe, holdsReadEnd, mayRun }

function findExecutable(pid: number): string | undefined {
  return readLink(`/proc/${pid}/exe`)
}

function findStdoutPipe(pid: number): string | undefined {
  const target = readLink(`/proc/${pid}/fd/1`)
  return target?.startsWith('pipe:') ? target : undefined
}

/** Whether the process has the pipe open for reading: the mode of the link shows the descriptor's access. */
function holdsReadEnd(pid: number, pipe: string): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some((name) => {
      const path = `${folder}/${name}`
      return readLink(path) === pipe && (lstatSync(path).mode & 0o400) !== 0
    })
  } catch {
    return false // not accessible to us, or already gone
  }
}

/** The pid namespace of this process, for example `pid:[4026531836]`. */
function readPidNamespace(): string {
  return readLink('/proc/self/ns/pid') ?? 'unknown'
}

/** Identifies process `pid` permanently, or returns undefined if it is already gone. */
export function identifyProcess(pid: number): ProcessHolder | undefined {
  const entry = findProcess(pid)
  if (entry === undefined || entry.isZombie) return undefined
  const machine = readMachine()
  return {
    kind: 'process',
    host: machine.host,
    machine: machine.id,
    pid,
    startTicks: entry.startTicks,
    bootId: readBootId() ?? 'unknown',
    pidNamespace: readPidNamespace(),
  }
}

/** Holds a lease until this process exits; where processes cannot be distinguished, until the lease expires. */
export function holdByThisProcess(): LeaseHolder {
  return identifyProcess(process.pid) ?? { kind: 'ttl' }
}

/**
 * Checks whether the process still runs: `unknown` if it is not visible from here (another machine, or another pid
 * namespace of this one). If /proc hides processes of other users (mounted with `hidepid=2`, or systemd's
 * `ProtectProc=invisible`), a pid that the kernel knows counts as alive. A rebooted machine has lost all its processes;
 * its id, its name and the time must show that it is the same machine: clones of a disk often share id and name, but
 * what was alive `seenAgoMs` ago, after this boot began, ran on another.
 */
export function checkProcess(
  holder: ProcessHolder,
  seenAgoMs: number,
  processes: Pick<typeof PROCESS_TREE, 'find' | 'mayRun'> = PROCESS_TREE,
): 'alive' | 'dead' | 'unknown' {
  const machine = readMachine()
  if (holder.machine !== machine.id) return 'unknown'
  if (holder.bootId !== (readBootId() ?? 'unknown')) {
    const isBeforeBoot = seenAgoMs > uptime() * 1000
    return holder.host === machine.host && isBeforeBoot ? 'dead' : 'unknown'
  }
  if (holder.pidNamespace !== readPidNamespace()) return 'unknown'
  const entry = processes.find(holder.pid)
  if (entry === undefined) return processes.mayRun(holder.pid) ? 'alive' : 'dead'
  return !entry.isZombie && entry.startTicks === holder.startTicks ? 'alive' : 'dead'
}

/** Whether the kernel knows a process with this pid, which /proc need not show. */
function mayRun(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH' // EPERM: another user's process
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
