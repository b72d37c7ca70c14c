import { chmodSync, lstatSync, mkdirSync, rmSync, type Stats } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'

const FOLDER_MODE = 0o755
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
 * and nobody else may write to the folder.
 */
export function findDoorFault(path: string): string | undefined {
  const folder = dirname(path)
  const around = look(folder)
  const socket = look(path)
  if (around === undefined || !around.isDirectory()) return `${folder} is no folder`
  if ((around.mode & 0o022) !== 0) return `others than its owner may write to ${folder}`
  if (socket === undefined) return undefined
  if (!socket.isSocket()) return `${path} is no socket`
  if (socket.uid !== around.uid && socket.uid !== 0 && around.uid !== 0)
    return `${path} belongs to another user than its folder`
  return undefined
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
