import { accessSync, constants, lstatSync } from 'node:fs'
import { userInfo } from 'node:os'
import { fileURLToPath } from 'node:url'
import { DscError } from '../failure/dsc-error.js'

/** A call that @types/node leaves out. */
type WithGroups = typeof process & { initgroups(user: string, extraGroup: number): void }

/** How a command that root starts is root again. */
let restored: { readonly uid: 0; readonly gid: 0 } | undefined

/**
 * Root becomes the owner of the folder, before it opens anything in it: a file there may be a link that leads root to
 * write elsewhere. Any other user stays as is, and so does root where the folder is its own or missing.
 * `isForCommand`: root later starts a command that runs as root; then only the effective user changes.
 */
export function becomeOwner(folder: string, { isForCommand }: { readonly isForCommand: boolean }): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = lstatSync(folder, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 }
  if (uid === 0) return
  const account = describeAccount(uid, gid, folder)
  if (account.name === undefined) process.setgroups!([account.gid])
  else (process as WithGroups).initgroups(account.name, account.gid)
  if (isForCommand) {
    process.setegid!(account.gid)
    process.seteuid!(uid)
    restored = { uid: 0, gid: 0 }
  } else {
    process.setgid!(account.gid)
    process.setuid!(uid)
  }
  Object.assign(process.env, { HOME: account.home, USER: account.name ?? '', LOGNAME: account.name ?? '' })
  for (const name of Object.keys(process.env)) if (/^XDG_.*_(HOME|DIR)$/.test(name)) delete process.env[name]
}

/** The user of a command that this process starts; undefined: its own. */
export function userOfCommand(): { readonly uid: 0; readonly gid: 0 } | undefined {
  return restored
}

/** Gives up for good what `becomeOwner` kept for a command, once the command runs. */
export function stayOwner(): void {
  if (restored === undefined) return
  const [uid, gid] = [process.geteuid!(), process.getegid!()]
  process.seteuid!(0)
  process.setegid!(0)
  process.setgid!(gid)
  process.setuid!(uid)
  restored = undefined
}

/** Name and group of a user. The system tells them of the effective user only. */
function describeAccount(uid: number, gid: number, folder: string) {
  process.seteuid!(uid)
  try {
    accessSync(fileURLToPath(import.meta.url), constants.R_OK)
    const { username, gid: ownGid, homedir } = userInfo()
    return { name: username, gid: ownGid, home: homedir }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_SYSTEM_ERROR')
      throw new DscError('USAGE', `${folder} belongs to uid ${uid}, who cannot read this dsc (${code})`, {
        hint: `install dsc where everybody can read it, or run it as uid ${uid}`,
        cause: error,
      })
    return { name: undefined, gid, home: '/' } // a number without an entry, as in containers
  } finally {
    process.seteuid!(0)
  }
}
