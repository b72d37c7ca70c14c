import { readFileSync } from 'node:fs'
import { findProcess, identifyProcess, type ProcessEntry } from '../platform/processes.js'
import { findUserName } from '../platform/this-user.js'
import type { Caller } from './plan/choose-holder.js'

/** Until when a lease of `--task` or of a pod lives unless it is renewed: a day. */
const DEFAULT_TTL_MS = 24 * 3_600_000

/**
 * Finds out who called: the environment of Slurm and Kubernetes, else the process that started this one.
 * `isOwnProcess` makes dsc itself the holder (`dsc run` stays as long as its command).
 */
export function identifyCaller(options: {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly task?: string | undefined
  readonly ttlMs?: number | undefined
  readonly isOwnProcess?: boolean
}): Caller {
  const { environment } = options
  return {
    task: options.task,
    ttlMs: options.ttlMs ?? DEFAULT_TTL_MS,
    slurmJobId: environment.SLURM_JOB_ID || undefined,
    podUid: findPodUid(environment),
    user: findUserName(environment),
    process: identifyProcess(options.isOwnProcess ? process.pid : findCallerPid(process.ppid, findProcess)),
  }
}

/**
 * Follows `pid` up to the process that a person would call the caller. A subshell, as in `P=$(dsc prepare x; …)`,
 * is a copy of its shell that ends at once: it has the command line of its parent. `npx dsc` and `npm run` put a
 * shell and npm itself in between; they end with dsc, so the caller is whoever started npm.
 */
export function findCallerPid(pid: number, find: (pid: number) => ProcessEntry | undefined): number {
  let entry = find(pid)
  while (entry !== undefined && entry.parentPid > 1) {
    const parent = find(entry.parentPid)
    if (parent === undefined) break
    const isSubshell = entry.commandLine !== '' && parent.commandLine === entry.commandLine
    const isStartedByNpm = isNpm(entry) || (isShellCommand(entry) && isNpm(parent))
    if (!isSubshell && !isStartedByNpm) break
    entry = parent
  }
  return entry?.pid ?? pid
}

function isNpm(entry: ProcessEntry): boolean {
  const words = entry.commandLine.split('\0')
  return /^(npm|npx)\b/.test(words[0] ?? '') || /\/(npm|npx)(-cli\.js)?$/.test(words[1] ?? '')
}

function isShellCommand(entry: ProcessEntry): boolean {
  const words = entry.commandLine.split('\0')
  return /(^|\/)(sh|bash|dash|zsh)$/.test(words[0] ?? '') && words[1] === '-c'
}

/** The pod's uid from the downward API (`POD_UID`), else from the cgroup path that kubelet makes. */
function findPodUid(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  if (environment.POD_UID) return environment.POD_UID
  if (!environment.KUBERNETES_SERVICE_HOST) return undefined
  for (const file of ['/proc/self/cgroup', '/proc/self/mountinfo']) {
    try {
      const match = /pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})/.exec(
        readFileSync(file, 'utf8'),
      )
      if (match) return match[1]!.replaceAll('_', '-')
    } catch {
      // Not readable here: the next file may be.
    }
  }
  return undefined
}
