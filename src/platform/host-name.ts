import { hostname } from 'node:os'

/** Returns the name of this machine without its domain, which is the default name of its node. */
export function findHostName(): string {
  return hostname().split('.')[0] || 'localhost'
}
