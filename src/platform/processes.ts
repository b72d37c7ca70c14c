import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { ProcessHolder } from '../model/lease.js'

/** A running process as the kernel describes it. */
export interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  /** Start time in clock ticks since boot. */
  readonly startTicks: string
  /** Arguments, separated by NUL, as in /proc/<pid>/cmdline; empty for kernel threads and zombies. */
  readonly commandLine: string
  /** A zombie has ended; only its exit status is left. */
  readonly isZombie: boolean
}

/** Looks a process up; undefined when there is none (Linux's /proc). */
export function findProcess(pid: number): ProcessEntry | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The command's name stands in parentheses and may contain anything, so fields are counted from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    parentPid: Number(fields[1]),
    startTicks: String(fields[19]),
    commandLine: readOrEmpty(`/proc/${pid}/cmdline`),
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
  }
}

/** Identifies this boot of the machine. */
export function readBootId(): string {
  return readOrEmpty('/proc/sys/kernel/random/boot_id').trim() || 'unknown'
}

/** The pid namespace of this process, for example `pid:[4026531836]`. */
function readPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return 'unknown'
  }
}

/** What identifies process `pid` for ever, or undefined when it is gone already. */
export function identifyProcess(pid: number): ProcessHolder | undefined {
  const entry = findProcess(pid)
  if (entry === undefined || entry.isZombie) return undefined
  return {
    kind: 'process',
    host: hostname(),
    pid,
    startTicks: entry.startTicks,
    bootId: readBootId(),
    pidNamespace: readPidNamespace(),
  }
}

/**
 * Says whether the process still runs: `unknown` when it cannot be seen from here (another machine, or
 * another pid namespace of this one). A machine that has been booted anew has lost all its processes.
 */
export function checkProcess(holder: ProcessHolder): 'alive' | 'dead' | 'unknown' {
  if (holder.host !== hostname()) return 'unknown'
  if (holder.bootId !== readBootId()) return 'dead'
  if (holder.pidNamespace !== readPidNamespace()) return 'unknown'
  const entry = findProcess(holder.pid)
  return entry && !entry.isZombie && entry.startTicks === holder.startTicks ? 'alive' : 'dead'
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
