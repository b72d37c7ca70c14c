import type { Socket } from 'node:net'
import { findSocketOwner } from '../../platform/socket-owner.js'

/** Users of this machine, by uid; `all`: any of them. */
export type LocalUsers = 'all' | ReadonlySet<number>

/** Whether a connection over loopback is one of these users'. */
export async function isLocalUser(socket: Socket, users: LocalUsers): Promise<boolean> {
  const known = isLocalUserAtOnce(socket, users)
  if (known !== undefined || users === 'all') return known === true
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  const uid = await findSocketOwner(
    { address: remoteAddress!, port: remotePort! },
    { address: localAddress!, port: localPort! },
  )
  return uid !== undefined && users.has(uid)
}

/** As `isLocalUser`, as far as it is known without asking the kernel whose connection it is; else undefined. */
export function isLocalUserAtOnce(socket: Socket, users: LocalUsers): boolean | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (!remoteAddress || !remotePort || !localAddress || !localPort) return false
  if (!isLoopbackAddress(remoteAddress) || !isLoopbackAddress(localAddress)) return false
  return users === 'all' ? true : undefined // what has an address of loopback was sent on this machine
}

function isLoopbackAddress(address: string): boolean {
  return /^(::1$|(::ffff:)?127\.)/.test(address)
}
