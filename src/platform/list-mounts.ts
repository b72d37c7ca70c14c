import { access, constants, readFile, statfs } from 'node:fs/promises'
import { unlessRejected } from '../failure/unless-code.js'
import type { DiskUsage } from '../model/policy.js'
import { readDiskUsage } from './disk-usage.js'
import { type FileSystemKind, fileSystemKindOf } from './file-system-kind.js'
import { unescapeMountPath } from './mount-table.js'

/** A mounted file system and its usage. */
interface Mount {
  readonly path: string
  readonly kind: FileSystemKind
  readonly usage: DiskUsage
  /** Whether this user can make a folder in its root. */
  readonly isWritable: boolean
}

/**
 * Lists the mounted file systems of this machine, except those that give no answer. Empty without /proc (not Linux).
 * Never asks network mounts: if the server is gone, asking would hang.
 */
export async function listMounts(): Promise<Mount[]> {
  const text = await unlessRejected(['ENOENT'], readFile('/proc/self/mounts', 'utf8'))
  if (text === undefined) return []
  const mounts = await Promise.all(parseMounts(text).map(readMount))
  return mounts.filter((mount) => mount !== undefined)
}

/** Names, as in /proc/mounts, of file systems that can hold data on a local disk. */
const ASKED = new Set(['ext4', 'ext3', 'xfs', 'btrfs', 'zfs', 'f2fs', 'bcachefs', 'tmpfs', 'overlay'])

/**
 * Paths of the mounts worth asking, from the text of /proc/mounts, which writes spaces as `\040`. In a chroot whose
 * root is a plain folder, no line names `/`; it is still worth asking, because the file system this process runs from
 * answers.
 */
export function parseMounts(text: string): string[] {
  const lines = text.split('\n').map((line) => line.split(' '))
  const unlisted = lines.some(([, path]) => path === '/') ? [] : ['/']
  const listed = lines
    .filter(([, , type]) => type !== undefined && ASKED.has(type))
    .map(([, path]) => unescapeMountPath(path!))
  return [...unlisted, ...listed]
}

async function readMount(path: string): Promise<Mount | undefined> {
  try {
    const kind = fileSystemKindOf((await statfs(path)).type)
    const isWritable = await access(path, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    )
    return { path, kind, usage: await readDiskUsage(path), isWritable }
  } catch (error) {
    // Hidden by another mount, or in a folder that this user may not enter.
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return undefined
    throw error
  }
}
