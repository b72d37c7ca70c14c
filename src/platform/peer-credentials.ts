import type { Socket } from 'node:net'
import { openCLibrary } from './c-library.js'

/** The process at the other end of a Unix socket, as the kernel saw it when it connected. */
export interface Peer {
  readonly uid: number
  readonly gid: number
  /** Supplementary groups. Empty before Linux 4.13. */
  readonly groups: readonly number[]
  /** As this process sees it; 0: it cannot see it, because of pid namespaces. */
  readonly pid: number
}

/** Reads who connected. Undefined: the client is gone already, or is a user that this process has no name for. */
export type ReadPeer = (socket: Socket) => Peer | undefined

const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SO_PEERGROUPS = 59
const MAX_GROUPS = 1024
/** The kernel's uid for a user whom this process's user namespace does not map: `/proc/sys/fs/overflowuid`. */
const OVERFLOW_UID = 65_534

type GetSocketOption = (fd: number, level: number, name: number, value: Buffer, length: Buffer) => number

/** Loads what asks the kernel; or why that cannot be. */
export function loadReadPeer(): ReadPeer | { readonly obstacle: string } {
  const findFunction = openCLibrary()
  if ('obstacle' in findFunction) return findFunction
  const getSocketOption = findFunction<GetSocketOption>('int getsockopt(int, int, int, void *, void *)')
  return (socket) => {
    // Node has no public name for the descriptor of a socket.
    const { fd = -1 } = (socket as { _handle?: { fd?: number } })._handle ?? {}
    if (fd < 0) return undefined
    const credentials = readOption(getSocketOption, { fd, name: SO_PEERCRED, bytes: 12 })
    if (credentials?.length !== 12) return undefined
    const uid = credentials.readUInt32LE(4)
    if (uid === OVERFLOW_UID) return undefined
    const groups = readOption(getSocketOption, { fd, name: SO_PEERGROUPS, bytes: 4 * MAX_GROUPS })
    return {
      pid: credentials.readInt32LE(0),
      uid,
      gid: credentials.readUInt32LE(8),
      groups: groups === undefined ? [] : readNumbers(groups),
    }
  }
}

function readOption(
  getSocketOption: GetSocketOption,
  { fd, name, bytes }: { readonly fd: number; readonly name: number; readonly bytes: number },
): Buffer | undefined {
  const value = Buffer.alloc(bytes)
  const length = Buffer.from(Uint32Array.of(bytes).buffer)
  if (getSocketOption(fd, SOL_SOCKET, name, value, length) !== 0) return undefined
  return value.subarray(0, length.readUInt32LE(0))
}

function readNumbers(bytes: Buffer): number[] {
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, index) => bytes.readUInt32LE(4 * index))
}
