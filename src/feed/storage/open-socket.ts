import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

/** How a feed believes that a storage node is the one it means. */
export interface StorageTls {
  /** Certificates (PEM) of the authorities that are believed; absent: those of the system. */
  readonly ca: string | undefined
}

/** Connects to a storage node; with `tls` encrypted, and only if its certificate is for the host and believed. */
export function openStorageSocket(options: TcpNetConnectOpts, tls: StorageTls | undefined): Socket {
  if (!tls) return connect(options)
  const socket = connectTls({
    ...(options as ConnectionOptions),
    ca: tls.ca,
    minVersion: 'TLSv1.3',
  })
  socket.setNoDelay(true)
  return socket
}
