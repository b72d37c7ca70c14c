import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from './config.js'

/**
 * Where commands ask the node's service instead of using a cache themselves. The usual place counts if its folder is
 * there: a service that is being restarted has no socket for a moment.
 */
export function findDoor({ door }: Pick<Config, 'door'>): string | undefined {
  if (door === undefined) return undefined
  return door.isNamed || existsSync(dirname(door.path)) ? door.path : undefined
}
