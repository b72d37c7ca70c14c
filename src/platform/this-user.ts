import { homedir, userInfo } from 'node:os'

/** Name of the user who runs this: `$USER`, else the system's, else `uid-1234` where a container gave a bare number. */
export function findUserName(environment: Readonly<Record<string, string | undefined>>): string {
  return environment.USER || askSystem(() => userInfo().username) || `uid-${process.geteuid?.()}`
}

/** Name of the user whose rights this process has, whatever its environment says; `uid-1234` where it has none. */
export function findAccountName(): string {
  return askSystem(() => userInfo().username) || `uid-${process.geteuid?.()}`
}

/** Home folder of the user who runs this: `$HOME`, else the system's, else `/`. */
export function findHomeDirectory(): string {
  return askSystem(homedir) ?? '/'
}

/** Libraries that look below the home folder fail where the system knows of none: they get `/`. */
export function giveHome(environment: Record<string, string | undefined>): void {
  if (!environment.HOME && askSystem(homedir) === undefined) environment.HOME = findHomeDirectory()
}

/** The user may have no entry in the system's table. */
function askSystem(ask: () => string): string | undefined {
  try {
    return ask()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SYSTEM_ERROR') return undefined
    throw error
  }
}
