import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { succeeds } from '../../testing/dsc-processes.js'
import {
  fillBlocks,
  fillBlocksAs,
  fillInodes,
  mountExt4WithRootShare,
  mountSmallDisk,
  mountSmallExt4,
  whyNoSmallDisk,
} from '../../testing/small-disk.js'
import { makeWorld, writeTree } from '../../testing/world.js'

const GROUP = 64_000
const ROOT = { uid: 0, gid: GROUP }
const ADA = { uid: 64_001, gid: GROUP }
const DISK_BYTES = 64 << 20

for (const { disk, mount } of [
  { disk: 'ext4', mount: mountSmallExt4 },
  { disk: 'tmpfs', mount: mountSmallDisk },
  { disk: "ext4 but for root's share", mount: mountExt4WithRootShare },
]) {
  for (const { what, fill } of [
    {
      what: 'bytes',
      fill: disk.includes('share') ? (folder: string) => fillBlocksAs(folder, ADA) : fillBlocks,
    },
    { what: 'inodes', fill: fillInodes },
  ]) {
    for (const { who, owner } of [
      { who: 'root', owner: ROOT },
      { who: 'a user', owner: ADA },
    ]) {
      test(`with 0 ${what} free on ${disk}, ${who} takes what is ready, releases it, cleans up and evicts`, {
        skip: whyNoSmallDisk,
      }, async (context) => {
        const mounted = await mount(context, DISK_BYTES, 2048)
        const { world, environment } = await makeLettersOn(context, mounted, owner)
        const as = (...words: readonly string[]) => world.start(words, { owner, environment }).finished
        await succeeds(as('prepare', 'letters', '--task', 'one'))
        const steps = [
          ['prepare', 'letters', '--task', 'two'],
          ['release', '--all', '--task', 'two'],
          ['cleanup'],
          ['release', '--all', '--task', 'one'],
          ['evict', 'letters', '--yes'],
        ]
        for (const words of steps) {
          fill(mounted)
          const { bavail, ffree } = statfsSync(mounted)
          assert.ok(bavail === 0 || ffree === 0, `${bavail} blocks and ${ffree} inodes are free`)
          const { code, signal, stderr } = await as(...words)
          assert.deepEqual([code, signal], [0, null], `${words}: ${stderr}`)
        }
      })
    }
  }
}

test('where root has taken of its share, a user is told to delete something else, and goes on then', {
  skip: whyNoSmallDisk,
}, async (context) => {
  const mounted = await mountExt4WithRootShare(context, DISK_BYTES, 2048)
  const { world, environment } = await makeLettersOn(context, mounted, ADA)
  const as = (owner: typeof ADA, ...words: readonly string[]) =>
    world.start(words, { owner, environment }).finished
  assert.equal((await as(ADA, 'prepare', 'letters', '--ttl', '1s', '--task', 'one')).code, 0)
  fillBlocksAs(mounted, ADA)
  writeFileSync(join(mounted, 'log-of-root'), Buffer.alloc(2 << 20, 1))
  const { code, stderr } = await as(ADA, 'release', '--all', '--task', 'one')
  assert.equal(code, 6, stderr)
  assert.match(stderr, /no space is left for this user[\s\S]*delete another file there/)
  rmSync(join(mounted, 'log-of-root'))
  for (const words of [
    ['release', '--all', '--task', 'one'],
    ['evict', 'letters', '--yes'],
  ]) {
    await succeeds(as(ADA, ...words))
  }
})

/** A cache of this owner on this disk, its record in it, and a dataset. */
async function makeLettersOn(context: TestContext, mounted: string, { uid, gid }: typeof ADA) {
  chmodSync(mounted, 0o755)
  const root = join(mounted, 'cache')
  mkdirSync(root)
  chownSync(root, uid, gid)
  const world = await makeWorld(context, {})
  chmodSync(world.directory, 0o755)
  const letters = join(world.directory, 'letters')
  await writeTree(letters, { a: 'alpha', b: 'beta' })
  await world.configure({ cache: { root }, datasets: { letters: { source: `file://${letters}/` } } })
  return { world, environment: { DSC_RECORD: join(root, 'record.db') } }
}
