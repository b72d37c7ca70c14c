import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { constants as osConstants } from 'node:os'
import { delimiter, join } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import { userOfCommand } from '../platform/become-owner.js'
import { restoreUmask } from '../platform/shared-folder.js'

/** Signals that dsc passes on to the command. */
const PASSED_ON = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGCONT',
  'SIGWINCH',
] as const

type Environment = Readonly<Record<string, string | undefined>>

interface SpawnedCommand {
  readonly pid: number | undefined
  /** The command's exit code, or 128 + the number of the signal that ended it, as in shells. */
  readonly exitCode: Promise<number>
}

/** Whether a shell would find a command of this name. */
export function mayRun(name: string, environment: Environment): boolean {
  return listCandidates(name, environment).some(isExecutable)
}

function listCandidates(name: string, { PATH = '' }: Environment): readonly string[] {
  return name.includes('/') ? [name] : PATH.split(delimiter).map((folder) => join(folder || '.', name))
}

/**
 * Finds a command as a shell would. Throws COMMAND_NOT_FOUND or COMMAND_UNUSABLE, before anything is downloaded for it.
 */
export function findExecutable(name: string, environment: Environment): string {
  const candidates = listCandidates(name, environment)
  const found = candidates.find(isExecutable)
  if (found !== undefined) return found
  const hint = 'check the word after --'
  if (!candidates.some((path) => existsSync(path))) {
    throw new DscError('COMMAND_NOT_FOUND', `cannot run ${name}: no such command`, { hint })
  }
  throw new DscError('COMMAND_UNUSABLE', `cannot run ${name}: it is not an executable file`, { hint })
}

/**
 * Runs the command on this terminal and passes signals on. If util-linux's setpriv exists, the kernel ends the command
 * (SIGTERM) when dsc itself is killed, so that no orphan keeps reading data without a lease.
 */
export function spawnCommand(
  executable: string,
  words: readonly string[],
  {
    environment,
    output = 'stdout',
  }: {
    readonly environment: Environment
    /** Where the command's stdout goes. */
    readonly output?: 'stdout' | 'stderr'
  },
): SpawnedCommand {
  const guard = ['/usr/bin/setpriv', '/bin/setpriv'].find(isExecutable)
  const [file, args] = guard
    ? [guard, ['--pdeathsig', 'TERM', '--', ...onlyBelowThisProcess(guard), executable, ...words]]
    : [executable, [...words]]
  restoreUmask()
  const child = spawn(file, args, {
    stdio: ['inherit', output === 'stderr' ? 2 : 'inherit', 'inherit'],
    env: { ...environment },
    ...userOfCommand(),
  })
  const forward = (signal: NodeJS.Signals) => {
    // A terminal signals its whole foreground group, so the command already has this one.
    const isFromTerminal =
      process.stdin.isTTY && (signal === 'SIGINT' || signal === 'SIGQUIT' || signal === 'SIGWINCH')
    if (!isFromTerminal) child.kill(signal)
  }
  for (const signal of PASSED_ON) process.on(signal, forward)
  const exitCode = new Promise<number>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new DscError('COMMAND_UNUSABLE', `cannot run ${executable}: ${error.message}`)),
    )
    child.once('exit', (code, signal) => {
      resolve(code ?? 128 + (signal ? osConstants.signals[signal] : 0))
    })
  }).finally(() => {
    for (const signal of PASSED_ON) process.off(signal, forward)
  })
  return { pid: child.pid, exitCode }
}

/**
 * Words that run the command by way of setpriv once more, at a path that leads nowhere once this process is dead: then
 * setpriv has asked for the signal too late, and would run the command without ever getting it. The path goes through
 * the network of this process because that is gone even while nobody has waited for the process, and needs no rights.
 */
function onlyBelowThisProcess(setpriv: string): readonly string[] {
  if (!existsSync('/proc/thread-self/net/stat')) return [] // not the path itself: old kernels remember what was there
  return [`/proc/${process.pid}/net/stat/../../../..${setpriv}`, '--']
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
