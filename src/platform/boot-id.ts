import { readFileSync } from 'node:fs'

/** Identifies this boot of the machine; undefined if the system has no such id. */
export function readBootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined // not Linux
  }
}
