import { access, constants } from 'node:fs/promises'
import type { Config } from '../../config/config.js'
import { readDiskUsage } from '../../platform/disk-usage.js'
import { type Check, errorCodeOf, failed, ok } from './check.js'
import { checkFreeSpace, checkInodes } from './check-cache-root.js'

/**
 * Checks what a user of the node's service needs: its answer, which brought this configuration, and a cache that they
 * can read. The record and the sources are the service's to reach.
 */
export async function checkDoor({ door, node, cache, datasets }: Config): Promise<Check[]> {
  const { root, policy } = cache
  const answered = ok('door', `the service of ${node} answers at ${door?.path}`)
  try {
    await access(root, constants.X_OK)
  } catch (error) {
    const problem = `${root}: cannot enter it: ${errorCodeOf(error)}`
    return [answered, failed('cache root', problem, `ask the owner of the service to run chmod a+rx ${root}`)]
  }
  const disk = await readDiskUsage(root)
  return [
    answered,
    ok('cache root', `${root} belongs to the service, and can be read`),
    checkFreeSpace(disk, policy.minFreeBytes ?? 0),
    checkInodes(disk),
    ok('datasets', `${datasets.length} declared by the service`),
  ]
}
