import { tryReadFile } from './try-read-file.js'

/** Identifies this boot of the machine; undefined if the system has no such id. */
export function readBootId(): string | undefined {
  return tryReadFile('/proc/sys/kernel/random/boot_id')?.trim()
}
