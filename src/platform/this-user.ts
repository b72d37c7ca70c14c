import { homedir, userInfo } from 'node:os'
import { unlessCode } from '../failure/unless-code.js'

/** Name of the current user: `$USER`, else the system's, else `uid-1234` in a container that gives only a number. */
export function findUserName(environment: Readonly<Record<string, string | undefined>>): string {
  return environment.USER || askSystem(() => userInfo().username) || `uid-${process.geteuid?.()}`
}

/** Name of the user whose rights this process has, regardless of its environment; `uid-1234` if it has none. */
export function findAccountName(): string {
  return askSystem(() => userInfo().username) || `uid-${process.geteuid?.()}`
}

/** Home folder of the current user: `$HOME`, else the system's, else `/`. */
export function findHomeDirectory(): string {
  return askSystem(homedir) ?? '/'
}

/** Sets `$HOME` to `/` if the system knows no home folder: libraries that look below it would fail otherwise. */
export function giveHome(environment: Record<string, string | undefined>): void {
  if (!environment.HOME && askSystem(homedir) === undefined) environment.HOME = findHomeDirectory()
}

/** Undefined if the user has no entry in the system's table. */
function askSystem(ask: () => string): string | undefined {
  return unlessCode(['ERR_SYSTEM_ERROR'], ask)
}
