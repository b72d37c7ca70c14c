import { statfs } from 'node:fs/promises'

/** The kind of file system that holds a path, as far as the kernel knows (`statfs(2)`, field `f_type`). */
export interface FileSystemKind {
  /** Name as in `mount`, or `0x…` for an unknown number. */
  readonly name: string
  /**
   * Whether other machines may mount it too. True for FUSE, which hides what is behind it (sshfs, s3fs and JuiceFS
   * report the same number): do not trust locks and shared memory there.
   */
  readonly isNetwork: boolean
}

const LOCAL: Readonly<Record<number, string>> = {
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  801189825: 'zfs',
  16914836: 'tmpfs',
  2240043254: 'ramfs',
  2035054128: 'overlay',
  4076150800: 'f2fs',
  3393526350: 'bcachefs',
  19780: 'vfat',
  538032816: 'exfat',
  1397118030: 'ntfs',
  1936094318: 'ntfs3',
  1936814952: 'squashfs',
  827541066: 'jfs',
  1382369651: 'reiserfs',
  61791: 'ecryptfs',
  26: 'apfs',
}

const NETWORK: Readonly<Record<number, string>> = {
  26985: 'nfs',
  198183888: 'lustre',
  1196443219: 'gpfs',
  4283649346: 'cifs',
  4266872130: 'smb2',
  20859: 'smb',
  12805120: 'ceph',
  428016422: 'beegfs',
  1702057286: 'fuse',
  16914839: '9p',
  1397113167: 'afs',
  1799439955: 'kafs',
  1937076805: 'coda',
  1952539503: 'ocfs2',
  18225520: 'gfs2',
  537068840: 'orangefs',
  2866260714: 'panfs',
  2020557398: 'vboxsf',
  3133910204: 'vmhgfs',
}

/** The file system kind of a number from `statfs`. Negative numbers are 32-bit ones that Node read as signed. */
export function fileSystemKindOf(statfsType: number): FileSystemKind {
  const type = statfsType < 0 ? statfsType + 2 ** 32 : statfsType
  const local = LOCAL[type]
  if (local !== undefined) return { name: local, isNetwork: false }
  const network = NETWORK[type]
  if (network !== undefined) return { name: network, isNetwork: true }
  return { name: `0x${type.toString(16)}`, isNetwork: false }
}

/** Asks the kernel for the kind of file system that holds `path`, which must exist. */
export async function readFileSystemKind(path: string): Promise<FileSystemKind> {
  return fileSystemKindOf((await statfs(path)).type)
}
