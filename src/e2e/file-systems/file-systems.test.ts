import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  globSync,
  openSync,
  readFileSync,
  readSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import { startCountingStore } from '../../testing/counting-store.js'
import { MOUNTABLE } from '../../testing/file-systems.js'
import { makeWorld, waitFor } from '../../testing/world.js'

const MIB = 2 ** 20
/** In two parts. */
const LARGE = randomBytes(26 * MIB)
const OBJECTS = new Map([
  ['data/large', LARGE],
  ['data/small', randomBytes(4 * MIB)],
  ['faces/one', Buffer.from('a face')],
  ['wide/one', Buffer.alloc(16 * MIB)],
])
/** The first of the large object's two parts. */
const PART_BYTES = 16 * MIB
const [READER, OTHER, STRANGER] = [1, 2, 65_534] // daemon, bin and nobody of every Debian

/** How two versions hold an equal file; links of a server have no common number here. */
type Sharing = 'hard link' | 'reflink' | 'link of the server'

const EXPECTED: Readonly<
  Record<string, { readonly sharing: Sharing; readonly hasLists: boolean; readonly isRecordSafe: boolean }>
> = {
  ext4: { sharing: 'hard link', hasLists: true, isRecordSafe: true },
  'ext4 with a project quota': { sharing: 'hard link', hasLists: true, isRecordSafe: true },
  xfs: { sharing: 'reflink', hasLists: true, isRecordSafe: true },
  btrfs: { sharing: 'reflink', hasLists: true, isRecordSafe: true },
  tmpfs: { sharing: 'hard link', hasLists: true, isRecordSafe: true },
  overlay: { sharing: 'hard link', hasLists: true, isRecordSafe: true },
  'fuse-overlayfs': { sharing: 'hard link', hasLists: true, isRecordSafe: false },
  'SFTP (sshfs)': { sharing: 'link of the server', hasLists: false, isRecordSafe: false },
}

describe('a cache', { concurrency: 2 }, () => {
  for (const [name, { sharing, hasLists, isRecordSafe }] of Object.entries(EXPECTED)) {
    const { skip, mount } = MOUNTABLE[name]!
    test(`on ${name}`, { skip }, async (t) => {
      const disk = await mount(t)
      const cache = await openCache(t, join(disk, 'cache'))
      await t.test('goes on after kill -9', () => goesOn(cache))
      await t.test('finds one flipped bit, and repairs it', () => repairs(cache))
      await t.test(`shares a file of two versions by ${sharing}`, () => shares(cache, sharing))
      await t.test('leaves free what it was told to', () => leavesFree(cache))
      await t.test(hasLists ? 'lets only readers in' : 'refuses readers, as it has no lists', () =>
        letsIn(cache, hasLists),
      )
      await t.test(isRecordSafe ? 'keeps the record on it' : 'refuses the record', () =>
        keepsRecord(cache, isRecordSafe),
      )
      await t.test('is used while it is mounted read-only', () => usesReadOnly(cache, disk))
      await t.test('evicts', () => evicts(cache))
    })
  }
})

type Cache = Awaited<ReturnType<typeof openCache>>

async function openCache(t: TestContext, root: string) {
  const store = await startCountingStore(OBJECTS)
  t.after(() => store.close())
  const world = await makeWorld(t, {})
  const datasetOf = (prefix: string) => ({
    source: `s3://bucket/${prefix}/`,
    endpoint: store.endpoint,
    anonymous: true,
    pathStyle: true,
  })
  const configure = (changes: { record?: string; cache?: object } = {}) =>
    world.configure({
      ...changes,
      cache: { root, ...changes.cache },
      datasets: {
        data: datasetOf('data'),
        wide: datasetOf('wide'),
        faces: { ...datasetOf('faces'), readers: ['user:daemon', 'user:bin'] },
      },
    })
  await configure()
  const dsc = async (code: number, ...words: readonly string[]) => {
    const ended = await world.dsc(...words)
    assert.equal(ended.code, code, `dsc ${words.join(' ')}: ${ended.stdout}${ended.stderr}`)
    return ended
  }
  const pathOf = async (dataset: string, task: string, ...words: readonly string[]) =>
    (await dsc(0, 'prepare', dataset, '--task', task, ...words)).stdout.trim()
  return { root, store, world, configure, dsc, pathOf }
}

/** Whether a staging below `root` has the last bytes of this beginning of the large object. */
function endsWithBytes(root: string, beginning: Buffer): boolean {
  const expected = beginning.subarray(-4096)
  const [file] = globSync('staging/*/files/large', { cwd: root })
  if (file === undefined) return false
  const descriptor = openSync(join(root, file), 'r')
  try {
    const found = Buffer.alloc(expected.length)
    readSync(descriptor, found, 0, found.length, beginning.length - found.length)
    return found.equals(expected)
  } finally {
    closeSync(descriptor)
  }
}

async function goesOn({ root, store, world, pathOf }: Cache) {
  const letGo = store.holdBack('data/large', 2)
  const killed = world.start(['prepare', 'data', '--task', 'a'])
  await waitFor('the first part on the disk', () => endsWithBytes(root, LARGE.subarray(0, PART_BYTES)))
  killed.process.kill('SIGKILL')
  await killed.finished
  const before = store.sentBytes()
  letGo()
  const path = await pathOf('data', 'a')
  const after = store.sentBytes() - before
  // The small object may not have come yet.
  assert.ok(after <= LARGE.length - PART_BYTES + 5 * MIB, `${after} bytes came again`)
  for (const name of ['large', 'small'])
    assert.ok(readFileSync(join(path, name)).equals(OBJECTS.get(`data/${name}`)!), name)
}

async function repairs({ dsc, pathOf }: Cache) {
  const file = join(await pathOf('data', 'a'), 'large')
  const bytes = readFileSync(file)
  bytes[PART_BYTES]! ^= 1
  chmodSync(file, 0o644)
  writeFileSync(file, bytes)
  chmodSync(file, 0o444)
  const { stdout } = await dsc(0, 'verify', 'data', '--repair')
  assert.match(stdout, /1 damaged/)
  assert.ok(readFileSync(file).equals(LARGE))
}

async function shares({ store, pathOf }: Cache, sharing: Sharing) {
  const first = await pathOf('data', 'a')
  store.put('data/small', randomBytes(4 * MIB))
  const [sent, { bavail, bsize }] = [store.sentBytes(), statfsSync(first)]
  const second = await pathOf('data', 'a', '--refresh')
  assert.equal(store.sentBytes() - sent, 4 * MIB)
  const usedBytes = (bavail - statfsSync(second).bavail) * bsize
  assert.ok(usedBytes < LARGE.length / 2, `the second version took ${usedBytes} bytes`)
  const [one, other] = [first, second].map((path) => statSync(join(path, 'large')).ino)
  assert.equal(one === other, sharing === 'hard link')
}

async function leavesFree({ root, store, configure, dsc }: Cache) {
  const { bavail, bsize } = statfsSync(root)
  await configure({ cache: { minFree: `${Math.floor((bavail * bsize) / MIB) - 8}MiB` } })
  const sent = store.sentBytes()
  await dsc(5, 'prepare', 'wide', '--task', 'a')
  assert.equal(store.sentBytes(), sent)
  await configure()
}

async function letsIn({ dsc, pathOf }: Cache, hasLists: boolean) {
  if (!hasLists) {
    const { stderr } = await dsc(3, 'prepare', 'faces', '--task', 'a')
    assert.match(stderr, /has no access control lists/)
    return
  }
  const file = join(await pathOf('faces', 'a'), 'one')
  for (const uid of [READER, OTHER, STRANGER]) {
    const { status } = spawnSync('cat', [file], { uid, gid: uid })
    assert.equal(status === 0, uid !== STRANGER, `user ${uid}`)
  }
}

async function keepsRecord({ root, configure, dsc, pathOf }: Cache, isSafe: boolean) {
  const file = join(root, '..', 'record.db')
  await configure({ record: `sqlite://${file}`, cache: { root: `${root}-2` } })
  if (isSafe) {
    const tasks = ['a', 'b', 'c']
    const paths = await Promise.all(tasks.map((task) => pathOf('wide', task)))
    assert.equal(new Set(paths).size, 1)
    const database = new Database(file, { readonly: true })
    assert.equal(database.pragma('integrity_check', { simple: true }), 'ok')
    assert.deepEqual(database.prepare('SELECT count(*) FROM leases').pluck().all(), [tasks.length])
    database.close()
  } else {
    const { stderr } = await dsc(3, 'prepare', 'wide', '--task', 'a')
    assert.match(stderr, /where SQLite is not safe/)
  }
  await configure()
}

async function usesReadOnly({ dsc, pathOf }: Cache, disk: string) {
  const mounted = execFileSync('stat', ['-c', '%m', disk], { encoding: 'utf8' }).trim()
  const remount = (how: string) => execFileSync('mount', ['-o', `remount,bind,${how}`, mounted])
  remount('ro')
  try {
    const path = await pathOf('data', 'b')
    assert.ok(readFileSync(join(path, 'large')).equals(LARGE))
    const { stderr } = await dsc(3, 'prepare', 'wide', '--task', 'b')
    assert.match(stderr, /the file system is read-only/)
  } finally {
    remount('rw')
  }
}

async function evicts({ dsc, pathOf }: Cache) {
  const path = await pathOf('data', 'a')
  for (const task of ['a', 'b']) await dsc(0, 'release', '--all', '--task', task)
  await dsc(0, 'evict', 'data', '--yes')
  assert.ok(!existsSync(path))
}
