import { unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { openOrClose } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { SocketFolder } from './socket-folder.js'

/**
 * Listens for this user only; takes over a socket that a dead feed left behind. The folder stays open until the server
 * closes, which removes the socket.
 */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) > 107)
    throw new DscError('USAGE', `the socket path ${path} is longer than 107 bytes`, {
      hint: '--socket <shorter path>',
    })
  await openOrClose(async (closers) => {
    const folder = SocketFolder.make(path)
    closers.add(() => folder.close())
    folder.requireOwnSocket()
    if (await isAnswering(folder.address))
      throw new DscError('FEED_PROTOCOL', `another feed is listening on ${path}`, {
        hint: 'use it, stop it (dsc feed status --stop), or choose another --socket',
      })
    await listen(server, folder.address)
    server.once('close', () => folder.close())
  })
}

async function listen(server: Server, address: string): Promise<void> {
  try {
    unlinkSync(address)
  } catch {
    // usually it does not exist; if it cannot be removed, listening reports why
  }
  const mask = process.umask(0o177)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(address, resolve)
    })
  } finally {
    process.umask(mask)
  }
}

function isAnswering(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
