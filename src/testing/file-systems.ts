import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { needs } from './needs.js'
import { mountImage, mountSmallDisk, whyNoSmallDisk } from './small-disk.js'
import { waitFor } from './world.js'

type Context = Pick<TestContext, 'after'>

/** A file system that a test can mount. */
interface Mountable {
  /** Why this machine cannot mount it, or false. */
  readonly skip: string | false
  /** Mounts it until the test ends, and returns where. */
  readonly mount: (context: Context) => Promise<string>
}

const IMAGE_BYTES = 320 * 2 ** 20
const PROJECT = '7'
const WITH_PROJECT_QUOTA = ['-O', 'quota,project', '-E', 'quotatype=prjquota']
const SFTP_SERVER = '/usr/lib/openssh/sftp-server'
const FOR_ALL = 'allow_other,default_permissions'

/** File systems by their name in the documents. Those of FUSE stand for what the kernels of tests lack. */
export const MOUNTABLE: Readonly<Record<string, Mountable>> = {
  ext4: {
    skip: whyNoSmallDisk || needs('mkfs.ext4', 'e2fsprogs'),
    mount: (context) => mountImage(context, IMAGE_BYTES, ['mkfs.ext4', '-q', '-F']),
  },
  'ext4 with a project quota': {
    skip: whyNoSmallDisk || needs('setquota', 'quota') || whyNoProjectQuota(),
    async mount(context) {
      const make = ['mkfs.ext4', '-q', '-F', ...WITH_PROJECT_QUOTA]
      const disk = await mountImage(context, IMAGE_BYTES, make, 'prjquota')
      const folder = join(disk, 'project')
      mkdirSync(folder)
      execFileSync('chattr', ['-p', PROJECT, '+P', folder])
      execFileSync('setquota', ['-P', PROJECT, '0', String((IMAGE_BYTES * 0.75) / 1024), '0', '0', disk])
      return folder
    },
  },
  xfs: ofKernel('xfs', needs('mkfs.xfs', 'xfsprogs'), (context) =>
    mountImage(context, IMAGE_BYTES, ['mkfs.xfs', '-q']),
  ),
  btrfs: ofKernel('btrfs', needs('mkfs.btrfs', 'btrfs-progs'), (context) =>
    mountImage(context, IMAGE_BYTES, ['mkfs.btrfs', '-q']),
  ),
  tmpfs: { skip: whyNoSmallDisk, mount: (context) => mountSmallDisk(context, IMAGE_BYTES) },
  overlay: ofKernel('overlay', false, (context) =>
    mountOver(context, (options, target) => ['mount', '-t', 'overlay', 'overlay', '-o', options, target]),
  ),
  'fuse-overlayfs': ofFuse(needs('fuse-overlayfs', 'fuse-overlayfs'), (context) =>
    mountOver(context, (options, target) => ['fuse-overlayfs', '-o', `${options},${FOR_ALL}`, target]),
  ),
  'SFTP (sshfs)': ofFuse(needs('sshfs', 'sshfs') || needs(SFTP_SERVER, 'openssh-sftp-server'), mountSftp),
}

function ofKernel(name: string, lacks: string | false, mount: Mountable['mount']): Mountable {
  const isKnown = existsSync('/proc/filesystems') && readFileSync('/proc/filesystems', 'utf8')
  const isMissing = isKnown === false || !new RegExp(`\\t${name}$`, 'm').test(isKnown)
  return { skip: whyNoSmallDisk || lacks || (isMissing && `this kernel has no ${name}`), mount }
}

function ofFuse(lacks: string | false, mount: Mountable['mount']): Mountable {
  const isMissing = !existsSync('/dev/fuse')
  return { skip: whyNoSmallDisk || lacks || (isMissing && 'this kernel has no FUSE'), mount }
}

/** Kernels of virtual machines are often built without the format of quotas, which only a mount tells. */
function whyNoProjectQuota(): string | false {
  const image = join(tmpdir(), `dsc-quota-${process.pid}.image`)
  const script = 'truncate -s 8M "$0" && mkfs.ext4 -q -F $1 "$0" && mount -o loop,prjquota "$0" /mnt'
  const words = ['--mount', 'sh', '-c', script, image, WITH_PROJECT_QUOTA.join(' ')]
  const { status } = spawnSync('unshare', words, { stdio: 'ignore' })
  rmSync(image, { force: true })
  return status !== 0 && 'this kernel has no project quotas on ext4'
}

/** A file system over a folder of the one that holds its layers. */
async function mountOver(
  context: Context,
  commandOf: (options: string, target: string) => readonly string[],
): Promise<string> {
  const disk = await mountSmallDisk(context, IMAGE_BYTES)
  const [lower, upper, work, target] = ['lower', 'upper', 'work', 'merged'].map((name) => join(disk, name))
  for (const folder of [lower!, upper!, work!, target!]) mkdirSync(folder)
  const [program, ...words] = commandOf(`lowerdir=${lower},upperdir=${upper},workdir=${work}`, target!)
  execFileSync(program!, words, { stdio: 'ignore' })
  unmountFirst(context, target!)
  return target!
}

/** SFTP over a pipe, without a network or a key. */
async function mountSftp(context: Context): Promise<string> {
  const disk = await mountSmallDisk(context, IMAGE_BYTES)
  const [folder, target] = ['served', 'mounted'].map((name) => join(disk, name))
  for (const each of [folder!, target!]) mkdirSync(each)
  const server = spawn(SFTP_SERVER, { stdio: ['pipe', 'pipe', 'ignore'] })
  const words = [`:${folder}`, target!, '-f', '-o', `passive,${FOR_ALL}`]
  const client = spawn('sshfs', words, { stdio: [server.stdout!, server.stdin!, 'ignore'] })
  unmountFirst(context, target!)
  context.after(() => [client, server].map((child) => child.kill('SIGKILL')))
  await waitFor('sshfs', () => readFileSync('/proc/mounts', 'utf8').includes(` ${target} fuse.sshfs `))
  return target!
}

/** Unmounts when the test ends, before the file system below. */
function unmountFirst(context: Context, target: string): void {
  context.after(() => spawnSync('umount', ['--lazy', target]))
}
