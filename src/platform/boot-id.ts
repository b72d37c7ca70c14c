import { readFileSync } from 'node:fs'

/** Names this boot of the machine, or undefined where the system has no such name. */
export function readBootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined // other than Linux
  }
}
