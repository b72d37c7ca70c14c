import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cache } from '../../cache/cache.js'

/**
 * Part of a disk shared with kubelet that copies leave free, in percent. By default kubelet deletes images, and evicts pods
 * for the images' disk, when 15 are left.
 */
const FREE_PERCENT = 20

/**
 * The cache with a `minFree` that keeps kubelet, whose folder is `kubelet`, from evicting pods while there are idle copies:
 * where both are on one disk and the configuration has no `minFree`.
 */
export async function leaveRoomToKubelet<Found extends Pick<Cache, 'root' | 'policy' | 'measureDisk'>>(
  cache: Found,
  kubelet: string,
): Promise<Found> {
  if (cache.policy.minFreeBytes !== undefined || !(await isOnDiskOfKubelet(cache.root, kubelet))) return cache
  const { capacityBytes } = await cache.measureDisk()
  const minFreeBytes = Math.ceil((capacityBytes * FREE_PERCENT) / 100)
  return { ...cache, policy: { ...cache.policy, minFreeBytes } }
}

/** Whether the cache's root lies on the disk that kubelet, whose folder is `kubelet`, keeps free for pods. */
export async function isOnDiskOfKubelet(root: string, kubelet: string): Promise<boolean> {
  const folders = [root, join(kubelet, 'pods')]
  const [first, second] = await Promise.all(folders.map((path) => stat(path).catch(() => undefined)))
  return first !== undefined && first.dev === second?.dev
}
