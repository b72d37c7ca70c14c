import { freemem } from 'node:os'

/** Memory that the kernel could give to the page cache for this process, in bytes: less in a container with a limit. */
export function findCacheMemory(): number {
  return Math.min(freemem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
}
