import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { checkAgentIdentity } from '../../platform/agent-certificate.js'

/** How a feed verifies a storage node's identity. */
export interface StorageTls {
  /** Certificates (PEM) of the trusted authorities; without them, the system's. */
  readonly ca: string | undefined
}

/** Connects to a storage node; with `tls` encrypted, and only if its certificate is trusted and for the host. */
export function openStorageSocket(options: TcpNetConnectOpts, tls: StorageTls | undefined): Socket {
  if (!tls) return connect(options)
  const socket = connectTls({
    ...(options as ConnectionOptions),
    ca: tls.ca,
    checkServerIdentity: checkAgentIdentity,
    minVersion: 'TLSv1.3',
  })
  socket.setNoDelay(true)
  return socket
}
