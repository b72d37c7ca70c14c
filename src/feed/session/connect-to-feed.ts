import { connect, type Socket } from 'node:net'
import { openOrCloseNow } from '../../failure/closers.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { SocketFolder } from './socket-folder.js'

/** Connects to the feed that listens at `path`, if folder and socket are this user's. Throws FEED_GONE, FEED_PROTOCOL. */
export function connectToFeed(path: string): Socket {
  return openOrCloseNow((closers) => {
    const folder = openFolder(path)
    closers.add(() => folder.close())
    folder.requireOwnSocket()
    const socket = connect(folder.address)
    socket.once('close', () => folder.close())
    return socket
  })
}

function openFolder(path: string): SocketFolder {
  try {
    return SocketFolder.open(path)
  } catch (cause) {
    if (isDscError(cause)) throw cause
    throw feedGone(path, cause as Error)
  }
}

/** The failure of a question that no feed at `path` answered. */
export function feedGone(path: string, cause: Error): DscError {
  const { code } = cause as NodeJS.ErrnoException
  const why =
    code === 'ENOENT' ? 'none listens there' : code === 'ECONNREFUSED' ? 'it was killed' : cause.message
  return new DscError('FEED_GONE', `no feed answers on ${path}: ${why}`, {
    hint: 'dsc feed serve <dataset>, or --socket <path>',
    cause,
  })
}
