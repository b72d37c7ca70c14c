import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from './config.js'
import { type PathBase, resolvePath } from './resolve-path.js'

/** The configuration of a node's service, which everybody may read. */
export const NODE_CONFIG_FILE = '/etc/dsc/dsc.yaml'
export const NODE_DOOR = '/run/dsc/dsc.sock'
/** For `agent.door` and `DSC_DOOR`: there is no door, or it is not used. */
const NO_DOOR = 'none'

/** The facts by which a call is for the node’s service, or for a cache of one’s own. */
interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The configuration file in effect. */
  readonly filePath: string | undefined
  readonly workingDirectory: string
  readonly homeDirectory: string
}

/**
 * Chooses where commands ask: at the socket that DSC_DOOR names; at none, where a configuration of one's own counts; or
 * `usual`, at the socket that the node's own configuration names. Reads no file.
 */
export function chooseDoor(from: Surroundings): Config['door'] | 'usual' {
  const { environment, filePath, workingDirectory: folder, homeDirectory } = from
  const named = environment.DSC_DOOR
  if (named === NO_DOOR) return undefined
  if (named) return { path: resolvePath(named, { folder, homeDirectory }), isNamed: true }
  const isOwn =
    (filePath !== undefined && filePath !== NODE_CONFIG_FILE) ||
    (environment.DSC_RECORD ?? '') !== '' ||
    (environment.DSC_CACHE_ROOT ?? '') !== ''
  return isOwn ? undefined : 'usual'
}

/** The socket that a file names as `agent.door`. Undefined if it names no socket, or turns the door off. */
export function placeDoor(door: string | undefined, base: PathBase): string | undefined {
  return door === undefined || door === NO_DOOR ? undefined : resolvePath(door, base)
}

/**
 * Where commands ask the node's service instead of using a cache themselves. The usual place counts if its folder is
 * there: a service that is being restarted has no socket for a moment.
 */
export function findDoor({ door }: Pick<Config, 'door'>): string | undefined {
  if (door === undefined) return undefined
  return door.isNamed || existsSync(dirname(door.path)) ? door.path : undefined
}
