import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startSourceBench } from '../../testing/source-bench.js'

const CHILD = fileURLToPath(new URL('../../testing/stage-child.js', import.meta.url))
const MIB = 1024 * 1024

/** A mount namespace of its own: the small disk disappears with the process in any case. */
const words = ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']
const skip = spawnSync('unshare', words, { stdio: 'ignore' }).status !== 0 && 'needs user namespaces'

for (const { name, mountOptions, ballast } of [
  { name: 'space', mountOptions: 'size=24m', ballast: 'head -c 14M /dev/zero > ballast' },
  {
    name: 'inodes',
    mountOptions: 'size=64m,nr_inodes=60',
    ballast: 'for i in $(seq 1 30); do : > ballast-$i; done',
  },
]) {
  test(`a disk without ${name} is DISK_FULL, and with room again the download goes on`, {
    skip,
  }, async (context) => {
    const bench = await startSourceBench()
    context.after(() => bench.close())
    const objects = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`${index}`, Buffer.alloc(MIB / 3, `${index}`)]),
    )
    const { dataset } = await bench.makeSource(objects)
    const mountPoint = bench.makePath('disk')
    mkdirSync(mountPoint)
    const copyDirectory = join(mountPoint, 'copy')
    const child = `'${process.execPath}' '${CHILD}' '${JSON.stringify({ dataset, copyDirectory, concurrency: 4 })}'`
    const script = `mount -t tmpfs -o ${mountOptions} tmpfs '${mountPoint}' && cd '${mountPoint}' && ${ballast}
      ${child} && rm ballast* && ${child}`
    const { stdout } = await promisify(execFile)('unshare', ['-rm', 'sh', '-c', script])
    const [first, second] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.equal(first.code, 'DISK_FULL', first.message)
    assert.ok(
      second.fetchedFiles > 0 && second.fetchedFiles < 30,
      `${second.fetchedFiles} files were fetched again`,
    )
  })
}
