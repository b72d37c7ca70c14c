import type { Socket } from 'node:net'
import { findSocketOwner } from '../../platform/socket-owner.js'

/** Users of this machine, by uid; `all`: any of them. */
export type LocalUsers = 'all' | ReadonlySet<number>

/** Whether a connection over loopback is one of these users'. */
export async function isLocalUser(socket: Socket, users: LocalUsers): Promise<boolean> {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (!remoteAddress || !remotePort || !localAddress || !localPort) return false
  if (!/^(::1$|(::ffff:)?127\.)/.test(remoteAddress)) return false
  const uid = await findSocketOwner(
    { address: remoteAddress, port: remotePort },
    { address: localAddress, port: localPort },
  )
  return uid !== undefined && (users === 'all' || users.has(uid))
}
