import { tryReadFile } from './try-read-file.js'

/** Descriptors of a process that stages, beside those of its requests: Node.js, the record, the manifest, folders. */
const OWN_DESCRIPTORS = 56
/** Of one request: its connection or source file, the file it fills, and a folder on the way. */
const REQUEST_DESCRIPTORS = 3

/** How many files this process may have open at once; infinite where the system does not say. */
export function findDescriptorLimit(): number {
  return parseDescriptorLimit(tryReadFile('/proc/self/limits') ?? '')
}

/** Reads /proc/self/limits (proc(5)). */
export function parseDescriptorLimit(limits: string): number {
  return Number(/^Max open files +(\d+) /m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY)
}

/** Most requests at once under a limit of open files, 1 or more. */
export function planRequests(descriptorLimit: number): number {
  return Math.max(1, Math.floor((descriptorLimit - OWN_DESCRIPTORS) / REQUEST_DESCRIPTORS))
}
