import type { Socket } from 'node:net'
import { findSocketOwner } from '../../platform/socket-owner.js'

/** Users of this machine, by uid; `all`: any of them. */
export type LocalUsers = 'all' | ReadonlySet<number>

const NOBODY: LocalUsers = new Set()

/** Whether a loopback connection belongs to one of these users. */
export async function isLocalUser(socket: Socket, users: LocalUsers): Promise<boolean> {
  const known = isLocalUserAtOnce(socket, users)
  if (known !== undefined || users === 'all') return known === true
  const uid = await findLocalUser(socket)
  return uid !== undefined && users.has(uid)
}

/** The user of this machine whose connection it is; undefined: it comes from elsewhere, or its end is gone. */
export async function findLocalUser(socket: Socket): Promise<number | undefined> {
  if (isLocalUserAtOnce(socket, NOBODY) === false) return undefined
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  return findSocketOwner(
    { address: remoteAddress!, port: remotePort! },
    { address: localAddress!, port: localPort! },
  )
}

/** Like `isLocalUser`, without asking the kernel who owns the connection; undefined if only the kernel knows. */
export function isLocalUserAtOnce(socket: Socket, users: LocalUsers): boolean | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (!remoteAddress || !remotePort || !localAddress || !localPort) return false
  if (!isLoopbackAddress(remoteAddress) || !isLoopbackAddress(localAddress)) return false
  return users === 'all' ? true : undefined // a loopback address means that it was sent on this machine
}

function isLoopbackAddress(address: string): boolean {
  return /^(::1$|(::ffff:)?127\.)/.test(address)
}
