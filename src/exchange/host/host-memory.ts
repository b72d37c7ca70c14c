import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'
import { readBootId } from '../../platform/boot-id.js'
import { ExchangeMismatch } from '../failures.js'
import { SEGMENT_BYTES } from '../plan/layout.js'

/** Maximum number of a rank's segments that lie in memory until the others of its host have read them. */
export const MEMORY_SLOTS = 8
const MEMORY_FOLDER = '/dev/shm'
/** Linux' O_TMPFILE, which Node lacks: a file that never has a name, so that a crash at any instant leaves nothing. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY
const MEMORY_BYTES = MEMORY_SLOTS * SEGMENT_BYTES

/** Memory of this rank that other ranks of its host read. */
export interface HostMemory {
  /** Names the host: ranks with the same name can open each other's memory. */
  readonly hostKey: string
  /** The path at which they open it, while this process lives. */
  readonly path: string
  /** Writes at most `SEGMENT_BYTES` into a slot. */
  readonly write: (slot: number, bytes: Uint8Array) => void
  readonly close: () => void
}

/** Memory of another rank. */
export interface PeerMemory {
  /** Fills `target` from the start of a slot. */
  readonly read: (slot: number, target: Uint8Array) => void
  readonly close: () => void
}

/**
 * Creates memory without a name in any file system: the kernel frees it with the last process that holds it open, even
 * if that crashes. It is filled at once, so that a lack of memory shows here.
 */
export function openHostMemory(hostKey = nameHost()): HostMemory {
  let fd: number | undefined
  try {
    fd = openSync(MEMORY_FOLDER, O_TMPFILE | constants.O_RDWR, 0o600)
    writeFully(fd, new Uint8Array(MEMORY_BYTES), 0)
  } catch (cause) {
    if (fd !== undefined) closeSync(fd)
    const message = `${MEMORY_FOLDER} cannot hold the ${MEMORY_BYTES} bytes that ranks of a host share: ${(cause as Error).message}`
    const hint = 'free memory there (docker run --shm-size), or use one level: "levels": 1 in the plan'
    throw new DscError('USAGE', message, { hint, cause })
  }
  const descriptor = fd
  return {
    hostKey,
    path: `/proc/${process.pid}/fd/${fd}`,
    write: (slot, bytes) => writeFully(descriptor, bytes, slot * SEGMENT_BYTES),
    close: () => closeSync(descriptor),
  }
}

/** Opens the memory of rank `rank` at the path it announced. */
export function openPeerMemory(path: string, rank: number): PeerMemory {
  const fd = open()
  return {
    read(slot, target) {
      const found = readSync(fd, target, 0, target.length, slot * SEGMENT_BYTES)
      if (found !== target.length) throw new ExchangeMismatch(`the memory of rank ${rank} ends too early`)
    },
    close: () => closeSync(fd),
  }

  function open(): number {
    try {
      const opened = openSync(path, 'r')
      if (fstatSync(opened).size === MEMORY_BYTES) return opened
      closeSync(opened)
    } catch (cause) {
      throw cannotShare(rank, (cause as Error).message)
    }
    throw cannotShare(rank, `${path} is something else`)
  }
}

function cannotShare(rank: number, reason: string): ExchangeMismatch {
  return new ExchangeMismatch(
    `the memory of rank ${rank} on this host cannot be opened (${reason}): ranks of a host must be of one user and one container, or use one level ("levels": 1 in the plan)`,
  )
}

/**
 * Names this host for the exchange: its boot, and the namespaces of processes and network. Processes in different
 * network namespaces count as on different hosts: they reach each other only over the network.
 */
function nameHost(): string {
  const space = (kind: string) => statSync(`/proc/self/ns/${kind}`).ino
  return `${readBootId() ?? ''}/${space('pid')}/${space('net')}`
}

function writeFully(fd: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, at + done)
}
