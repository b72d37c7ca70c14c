import { readdirSync, readlinkSync } from 'node:fs'

/** Counts the descriptors of this process whose path begins with `prefix`. A removed file keeps the path it had. */
export function countDescriptors(prefix: string): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(prefix)
    } catch {
      return false // closed since the listing
    }
  }).length
}
