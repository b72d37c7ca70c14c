import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, type Stats } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { openOrCloseNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { O_PATH } from '../../platform/held-folder.js'

/**
 * The folder of a feed's socket, held open, so that the checked folder is the one used even if names change. Anybody
 * who can write there could answer in the feed's place, so folder and socket must belong to this user.
 */
export class SocketFolder {
  readonly #fd: number
  readonly #path: string

  private constructor(fd: number, path: string) {
    this.#fd = fd
    this.#path = path
  }

  /** Opens the folder of the socket at `path`. Throws FEED_PROTOCOL if others may write in it. */
  static open(path: string): SocketFolder {
    const folder = dirname(resolve(path))
    return openOrCloseNow((closers) => {
      const fd = openSync(folder, O_PATH | constants.O_DIRECTORY)
      closers.add(() => closeSync(fd))
      requireOwnFolder(folder, fstatSync(fd))
      return new SocketFolder(fd, path)
    })
  }

  /** Like `open`, but makes the folder if needed. */
  static make(path: string): SocketFolder {
    const folder = dirname(resolve(path))
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      throw new DscError('USAGE', `the folder ${folder} of the socket cannot be made (${code})`, {
        hint: '--socket <path> in a folder of your own, or XDG_RUNTIME_DIR',
        cause,
      })
    }
    return SocketFolder.open(path)
  }

  /** Address to connect to and listen on: the socket's name in the open folder. */
  get address(): string {
    return `/proc/self/fd/${this.#fd}/${basename(this.#path)}`
  }

  /** Throws FEED_PROTOCOL for another user's socket. A missing socket is fine. */
  requireOwnSocket(): void {
    const socket = lstatSync(this.address, { throwIfNoEntry: false })
    if (!socket) return
    if (!socket.isSocket()) throw refusal(this.#path, 'is no socket')
    if (socket.uid !== userId()) throw refusal(this.#path, `belongs to user ${socket.uid}`)
    if ((socket.mode & 0o077) !== 0) throw refusal(this.#path, `has mode ${formatMode(socket)}`)
  }

  close(): void {
    closeSync(this.#fd)
  }
}

/** In a folder like /tmp anybody can create names, but not remove another user's. There only the socket counts. */
function requireOwnFolder(folder: string, stats: Stats): void {
  const isShared = (stats.mode & 0o1000) !== 0 && [0, userId()].includes(stats.uid)
  if (isShared) return
  if (stats.uid !== userId()) throw refusal(folder, `belongs to user ${stats.uid}`)
  const isDefault = basename(folder) === `dsc-${userId()}`
  if ((stats.mode & (isDefault ? 0o077 : 0o022)) !== 0) throw refusal(folder, `has mode ${formatMode(stats)}`)
}

const userId = (): number => process.getuid?.() ?? 0
const formatMode = ({ mode }: Stats): string => (mode & 0o7777).toString(8).padStart(4, '0')

function refusal(path: string, what: string): DscError {
  return new DscError('FEED_PROTOCOL', `${path} ${what}, so another user may answer in the feed's place`, {
    hint: '--socket <path> in a folder of your own with mode 0700, or XDG_RUNTIME_DIR',
  })
}
