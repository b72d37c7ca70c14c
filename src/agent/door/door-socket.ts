import { chmodSync, lstatSync, mkdirSync, realpathSync, rmSync, type Stats } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'

const FOLDER_MODE = 0o755
const WRITE_OF_OTHERS = 0o002
const STICKY = 0o1000
/** Owner of what is outside of a user namespace, as seen in it: root's folders, in most containers without root. */
const UNSEEN_OWNER = 65_534
/** The folder beside the socket that containers mount in the place of the socket's own. */
const OF_JOBS = 'jobs'
/** Clients that are waiting to be let in, at most; the kernel may allow fewer. */
const BACKLOG = 4096

/** The socket for containers of jobs, beside that of a service. */
export function placeOfJobs(path: string): string {
  return join(dirname(path), OF_JOBS, basename(path))
}

/**
 * Listens on the socket at `path`. Makes its folder if only that is missing, and replaces a socket at which nobody
 * answers any more. Rejects with CONFIG_INVALID if others could put theirs there, and NODE_TAKEN if a service answers.
 */
export async function listenAtDoor(server: Server, path: string): Promise<void> {
  const folder = dirname(path)
  try {
    mkdirSync(folder, { mode: FOLDER_MODE })
    chmodSync(folder, FOLDER_MODE) // mkdir applied the umask
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(path, error)
  }
  const fault = findDoorFault(path)
  if (fault !== undefined) throw new DscError('CONFIG_INVALID', `agent.door: ${fault}`)
  await clearPlace(path)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(unusable(path, error)))
    // Everybody may connect; the service judges each.
    server.listen({ path, backlog: BACKLOG, readableAll: true, writableAll: true }, resolve)
  })
}

/**
 * Why the socket at `path` could be anybody's, or undefined: its folder and the socket must belong to one user or root,
 * nobody else may write to the folder, and not everybody may put another one in its place. A group may: teams share
 * folders.
 */
export function findDoorFault(path: string): string | undefined {
  const folder = dirname(path)
  const around = look(folder)
  const socket = look(path)
  if (around === undefined || !around.isDirectory()) return `${folder} is no folder`
  if ((around.mode & 0o022) !== 0) return `others than its owner may write to ${folder}`
  const replacer = findReplacer(path, ({ mode }) => (mode & WRITE_OF_OTHERS ? 'everybody' : undefined))
  if (replacer !== undefined) return replacer
  if (socket === undefined) return undefined
  if (!socket.isSocket()) return `${path} is no socket`
  if (socket.uid !== around.uid && socket.uid !== 0 && around.uid !== 0)
    return `${path} belongs to another user than its folder`
  return undefined
}

/** A folder on the way to a socket. */
export interface Folder extends Pick<Stats, 'uid' | 'gid' | 'mode'> {
  readonly path: string
}

/** Names those besides the owner and root who may write to a folder. */
type FindWriters = (folder: Folder) => string | undefined

/**
 * Why somebody could have put the folder of this socket there, with a service of their own, besides root, this user and
 * the owner of the folder; undefined: nobody could. A path in DSC_DOOR says nothing about the user who listens there.
 */
export function findReplacer(socketPath: string, findWriters: FindWriters): string | undefined {
  const folders = listUpwards(realpathSync.native(dirname(socketPath)))
  return findReplaceable(folders, { uid: process.geteuid?.() ?? 0, findWriters })
}

/** The same for a folder and those above it, up to the root; `uid`: this user's. */
export function findReplaceable(
  folders: readonly Folder[],
  { uid, findWriters }: { readonly uid: number; readonly findWriters: FindWriters },
): string | undefined {
  const owner = folders[0]?.uid
  for (const [index, found] of folders.entries()) {
    const inner = folders[index - 1]
    if (inner === undefined) continue
    if (![0, uid, owner, UNSEEN_OWNER].includes(found.uid)) return `${found.path} belongs to uid ${found.uid}`
    const writers = findWriters(found)
    // In such a folder nobody replaces what root or this user has made; what somebody else has, anybody could have.
    const isKept = (found.mode & STICKY) !== 0 && (inner.uid === 0 || inner.uid === uid)
    if (writers !== undefined && !isKept) return `${writers} may write to ${found.path}`
  }
  return undefined
}

function listUpwards(path: string): readonly Folder[] {
  const { uid, gid, mode } = lstatSync(path)
  return [{ path, uid, gid, mode }, ...(path === '/' ? [] : listUpwards(dirname(path)))]
}

/** Removes a socket whose service is gone. */
async function clearPlace(path: string): Promise<void> {
  if (look(path) === undefined) return
  const code = await new Promise<string | undefined>((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
  })
  if (code === undefined || code === 'EAGAIN')
    throw new DscError('NODE_TAKEN', `another service answers at ${path}`, {
      hint: 'stop it, or set agent.door in dsc.yaml to another socket',
    })
  rmSync(path, { force: true })
}

function look(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

function unusable(path: string, cause: unknown): DscError {
  const { code, message } = cause as NodeJS.ErrnoException
  return new DscError('CONFIG_INVALID', `agent.door: cannot listen at ${path} (${code ?? message})`, {
    hint: `make its folder for the user of the agent: sudo install -d -o $USER ${dirname(path)}`,
    cause,
  })
}
