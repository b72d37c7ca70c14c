import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { needsRoot } from './needs.js'

/** Why a test that needs its own disk is skipped, or false: only root may mount one, and not in every container. */
export const whyNoSmallDisk: string | false = needsRoot || (!mayMount() && 'needs leave to mount')

function mayMount(): boolean {
  const words = ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']
  return spawnSync('unshare', words, { stdio: 'ignore' }).status === 0
}

/** Mounts a file system of `sizeBytes` until the test ends, so that percentages and a full disk are real. */
export async function mountSmallDisk(
  context: Pick<TestContext, 'after'>,
  sizeBytes: number,
  inodes = 0, // as many as fit into memory
): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dsc-disk-'))
  execFileSync('mount', [
    '-t',
    'tmpfs',
    '-o',
    `size=${sizeBytes},nr_inodes=${inodes},mode=0755`,
    'tmpfs',
    path,
  ])
  context.after(async () => {
    await promisify(execFile)('umount', ['--lazy', path])
    await rmdir(path)
  })
  return path
}

/** Percentage of the disk that ext4 reserves for root by default. */
const ROOT_SHARE = 5

/**
 * Like `mountSmallDisk`, but ext4 in a file: blocks, inodes and shared memory behave as on a disk. Reserves nothing for
 * root.
 */
export function mountSmallExt4(
  context: Pick<TestContext, 'after'>,
  sizeBytes: number,
  inodes = 2048,
): Promise<string> {
  return mountExt4(context, { sizeBytes, inodes, rootShare: 0 })
}

/** Like `mountSmallExt4`, with root's reserve. */
export function mountExt4WithRootShare(
  context: Pick<TestContext, 'after'>,
  sizeBytes: number,
  inodes = 2048,
): Promise<string> {
  return mountExt4(context, { sizeBytes, inodes, rootShare: ROOT_SHARE })
}

function mountExt4(
  context: Pick<TestContext, 'after'>,
  disk: { readonly sizeBytes: number; readonly inodes: number; readonly rootShare: number },
): Promise<string> {
  const { sizeBytes, inodes, rootShare } = disk
  const make = ['mkfs.ext4', '-q', '-F', '-m', String(rootShare), '-N', String(inodes)]
  return mountImage(context, sizeBytes, make)
}

/** Why a test that needs file systems with shared blocks is skipped, or false. */
export function whyNoReflinks(command: string): string | false {
  if (whyNoSmallDisk) return whyNoSmallDisk
  return spawnSync(command, ['-V']).error === undefined ? false : `${command} is not installed`
}

/** Minimum size of an XFS, in bytes; the image is sparse. */
const LEAST_XFS_BYTES = 300 * 2 ** 20

/** Mounts a file system whose files can share blocks, until the test ends. */
export function mountReflinks(
  context: Pick<TestContext, 'after'>,
  command: 'mkfs.xfs' | 'mkfs.btrfs',
): Promise<string> {
  return mountImage(context, LEAST_XFS_BYTES, [command, '-q'])
}

/** Makes a file system in a file and mounts it until the test ends. */
export async function mountImage(
  context: Pick<TestContext, 'after'>,
  sizeBytes: number,
  [command, ...words]: readonly string[],
  options = 'rw',
): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dsc-disk-'))
  const image = `${path}.image`
  execFileSync('truncate', ['-s', String(sizeBytes), image])
  execFileSync(command!, [...words, image])
  execFileSync('mount', ['-o', `loop,${options}`, image, path])
  context.after(async () => {
    await promisify(execFile)('umount', ['--lazy', path])
    await rmdir(path)
    await rm(image)
  })
  return path
}

/** Fills the file system to its last block, including root's reserve. */
export function fillBlocks(folder: string): void {
  for (const bytes of [1 << 20, 4096, 512]) {
    try {
      for (let index = 0; ; index++)
        writeFileSync(join(folder, `fill-${bytes}-${index}`), Buffer.alloc(bytes, 1))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

/** Fills the file system until this user gets no block; root's reserve stays free. */
export function fillBlocksAs(folder: string, owner: { readonly uid: number; readonly gid: number }): void {
  const space = join(folder, `fill-by-${owner.uid}`)
  mkdirSync(space, { recursive: true })
  chownSync(space, owner.uid, owner.gid)
  const script =
    'for b in 1M 4k 512; do dd if=/dev/zero of="$0/$$-$b" bs=$b conv=fsync 2>/dev/null; done; true'
  execFileSync('sh', ['-c', script, space], owner)
}

/** Uses all inodes of the file system, one of them for a folder. */
export function fillInodes(folder: string): void {
  try {
    for (let index = 0; ; index++) writeFileSync(join(folder, `inode-${index}`), '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
