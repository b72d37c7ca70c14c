import { type Closers, openOrClose } from '../../failure/closers.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { loadReadPeer, type ReadPeer } from '../../platform/peer-credentials.js'
import { openDoor } from '../door/door-server.js'
import { placeOfJobs } from '../door/door-socket.js'
import { GuardedDatasets } from '../door/guarded-datasets.js'
import { UndeclaredBytes } from '../door/undeclared-bytes.js'
import type { Metrics } from '../metrics/metrics.js'
import type { AgentOptions } from './agent-options.js'
import type { PrivateCopies } from './private-copies.js'

const GRACE_MS = 10_000

/**
 * Opens the door, and beside it the one for containers of jobs, if the configuration has one.
 */
export async function openDoors(
  options: AgentOptions,
  work: {
    readonly metrics: Metrics
    readonly privates: PrivateCopies
    readonly stopping: AbortSignal
  },
  closers: Closers,
): Promise<void> {
  const { cache, note, version, door } = options
  if (door === undefined) return
  try {
    const { path, rules, access } = door
    const service = {
      ...{ ...work, cache, note, version, rules, access, readPeer: requireReadPeer() },
      guarded: new GuardedDatasets(cache),
      undeclared: new UndeclaredBytes(door.undeclaredBytesPerUser),
      onPrivate: () => work.privates.note(),
    }
    const opened = await openOrClose(async (undoing) => {
      const first = await openDoor({ ...service, path, isForJobs: false })
      undoing.add(() => first.stop(0))
      return [first, await openDoor({ ...service, path: placeOfJobs(path), isForJobs: true })]
    })
    closers.add(() => Promise.all(opened.map((one) => one.stop(GRACE_MS))))
  } catch (error) {
    if (door.isRequired || !isDscError(error, 'CONFIG_INVALID', 'NODE_TAKEN')) throw error
    if (isWithoutFolder(error.cause)) return
    note(`no door for the users of this machine: ${error.message}`)
  }
}

/** Whether a door could not have its folder since the root is read-only: in a container without a host's folder for it. */
function isWithoutFolder(cause: unknown): boolean {
  const { code, syscall } = (cause ?? {}) as NodeJS.ErrnoException
  return code === 'EROFS' && syscall === 'mkdir'
}

/** Throws CONFIG_INVALID where the kernel cannot be asked who connects. */
function requireReadPeer(): ReadPeer {
  const readPeer = loadReadPeer()
  if (!('obstacle' in readPeer)) return readPeer
  throw new DscError(
    'CONFIG_INVALID',
    `agent.door: cannot ask the kernel who connects: ${readPeer.obstacle}`,
    {
      hint: 'install dsc with its optional dependencies, or set agent.door to none',
    },
  )
}
