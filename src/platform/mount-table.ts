import { readFileSync } from 'node:fs'

/** A mount of this process's mount namespace. */
export interface MountEntry {
  /** Path of the mount point. */
  readonly path: string
  readonly isReadOnly: boolean
}

/** Lists the mounts that this process sees, in the order in which they cover each other. */
export function readMountTable(): readonly MountEntry[] {
  return parseMountTable(readFileSync('/proc/self/mountinfo', 'utf8'))
}

/** Parses /proc/self/mountinfo: fields 5 and 6 of a line are the mount point and its own options. */
export function parseMountTable(text: string): readonly MountEntry[] {
  return text.split('\n').flatMap((line) => {
    const [, , , , path, options] = line.split(' ')
    if (path === undefined || options === undefined) return []
    return [{ path: unescapeMountPath(path), isReadOnly: options.split(',').includes('ro') }]
  })
}

/** The kernel writes spaces and the like as `\040` in its tables of mounts. */
export function unescapeMountPath(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
}
