import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { whyNoSmallDisk } from '../../testing/small-disk.js'
import { makeWorld, writeTree } from '../../testing/world.js'

test('a feed uses what fits into the 64 MiB of shared memory that Docker gives, and says so', {
  skip: whyNoSmallDisk,
}, async (context) => {
  const world = await makeWorld(context, {})
  const folder = join(world.directory, 'samples')
  const files = Array.from({ length: 200 }, (_, index) => [`${index}.bin`, `sample ${index}`] as const)
  await writeTree(folder, Object.fromEntries(files))
  const feed = (...words: readonly string[]) => {
    const command = world.commandLine('feed', 'bench', folder, '--batch', '8', '--epochs', '1', ...words)
    const script = `mount -t tmpfs -o size=64m tmpfs /dev/shm && ${command}`
    return spawnSync('unshare', ['--mount', 'sh', '-c', script], { cwd: world.directory, encoding: 'utf8' })
  }
  const fitted = feed()
  assert.equal(fitted.status, 0, fitted.stderr)
  assert.match(
    fitted.stderr,
    /it uses 8 MiB instead of 256 MiB; a larger \/dev\/shm \(docker run --shm-size\) helps/,
  )
  const refused = feed('--memory', '100MiB')
  assert.notEqual(refused.status, 0)
  assert.match(refused.stderr, /\/dev\/shm has \d+ bytes free, but the feed is to use 104857600/)
})
