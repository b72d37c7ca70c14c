import assert from 'node:assert/strict'
import { existsSync, lstatSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findDamagedCopies } from '../../sources/damaged-copies.js'
import { cleanUp, openCacheWith } from '../../testing/evicted-copies.js'
import { evictCopies } from '../eviction/evict-copies.js'
import { keepCopy, listKept, measureRoom } from '../kept-copies.js'
import { findPastDeed, undoDeed } from './undo-deed.js'

test('a link in the place of a kept copy is left where it is, and refused', async (t) => {
  const { cache, evict } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  const [kept] = listKept(cache.root)
  const path = join(cache.root, 'trash', kept!.name)
  renameSync(path, join(cache.root, 'trash', 'away'))
  symlinkSync('away', path)
  await assert.rejects(undoDeed(cache, { by: 'ada' }), {
    code: 'UNDO_IMPOSSIBLE',
    message: /found a symbolic link/,
  })
  assert.ok(lstatSync(path).isSymbolicLink())
  assert.deepEqual(await cleanUp(cache), [
    { kind: 'empty-trash', path: join(cache.root, 'trash', 'away'), reason: 'left in the trash' },
  ])
})

test('a trash that is a link keeps nothing from being measured, and a cleanup tells it', async (t) => {
  const { cache, world } = await openCacheWith(t, ['flowers'])
  const trash = join(cache.root, 'trash')
  rmSync(trash, { recursive: true, force: true })
  symlinkSync('/tmp', trash)
  assert.equal((await measureRoom(cache)).freeBytes, world.freeBytes)
  assert.deepEqual(
    (await cleanUp(cache)).map(({ kind }) => kind),
    ['leave'],
  )
})

test('a copy that was damaged when it was evicted is damaged when it is back', async (t) => {
  const { cache, evict } = await openCacheWith(t, ['flowers'])
  const [before] = await cache.record.listCopies({}, cache.nowMs())
  const { node, dataset, copyId } = before!
  const event = { kind: 'damaged', atMs: cache.nowMs(), node, dataset, task: 'dsc verify' } as const
  await cache.record.addEvent({ ...event, copyId, reason: '1 file differs', detail: {} })
  await evict('flowers')
  await undoDeed(cache, { by: 'ada' })
  const [after] = await cache.record.listCopies({}, cache.nowMs())
  assert.deepEqual(await findDamagedCopies(cache.record, 'flowers'), new Set([copyId, after!.copyId]))
})

test('room that another process is deleting in the trash spares the other copies', async (t) => {
  const { cache, states, evict, stage, world } = await openCacheWith(t, ['birds', 'flowers'])
  await evict('flowers')
  const [kept] = listKept(cache.root)
  const { freeBytes } = world
  const trash = join(cache.root, 'trash')
  const dropped = join(trash, 'dropped-0123456789abcdef') // as that process renamed it
  renameSync(join(trash, kept!.name), dropped)
  const measureDisk = async () => ({
    capacityBytes: 1e12,
    freeBytes: existsSync(dropped) ? 0 : freeBytes,
    inodesTotal: 1e9,
    inodesFree: 1e9,
  })
  Object.assign(cache, { measureDisk })
  await stage('trees')
  assert.deepEqual(await states(), ['birds ready', 'trees ready'])
  assert.deepEqual(readdirSync(trash), [])
})

test('evict --free leaves that much really free, and keeps the rest', async (t) => {
  const disk = { capacityBytes: 1e12, freeBytes: 1e12, inodesTotal: 1e9, inodesFree: 1e9 }
  const measureDisk = async () => disk
  const { cache } = await openCacheWith(t, ['birds', 'flowers'], { measureDisk })
  Object.assign(disk, { capacityBytes: 100_000, freeBytes: 6000 }) // more than 5 percent
  const free = (bytes: number) => evictCopies(cache, { kind: 'free', bytes }, 'ada')
  const few = await free(1000)
  assert.deepEqual([few.victims.length, few.keptCopies], [1, 1])
  const many = await free(7000)
  assert.deepEqual([many.victims.length, many.keptCopies], [1, 1])
  const kept = listKept(cache.root).map(({ copyId }) => copyId)
  assert.deepEqual(kept, [many.victims[0]?.copy.copyId], 'the first one made room')
})

test('a kill before the row of an evicted copy went leaves a copy that comes back all the same', async (t) => {
  const { cache, states } = await openCacheWith(t, ['flowers'])
  const killed = {
    ...cache,
    record: { ...cache.record, finishEviction: () => Promise.reject(new Error('killed')) },
  }
  const selection = { kind: 'datasets', names: ['flowers'] } as const
  await assert.rejects(evictCopies(killed, selection, 'ada'), /killed/)
  assert.deepEqual(await states(), ['flowers evicting'])
  await undoDeed(cache, { by: 'ada' })
  assert.deepEqual(await states(), ['flowers ready'])
})

test('files that are not what was evicted stay in the trash', async (t) => {
  const { cache, states, evict, stage } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  const [kept] = listKept(cache.root)
  const { directory } = await stage('birds')
  keepCopy(cache.root, join(cache.root, 'trash', kept!.name), { ...kept!, copyId: 'elsewhere' })
  keepCopy(cache.root, directory, kept!)
  await assert.rejects(undoDeed(cache, { by: 'ada' }), { message: /not those that were evicted/ })
  assert.deepEqual(await states(), ['birds ready'])
})

test('what was evicted on another node is refused with the command for there', async (t) => {
  const { cache, evict } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  const { id } = await findPastDeed(cache, { by: 'ada' })
  await assert.rejects(undoDeed({ ...cache, node: 'node-b' }, { by: 'ada' }), {
    message: /: flowers was evicted on node-a: its files are in the trash there$/,
    hint: `dsc undo ${id} on node-a`,
  })
  assert.equal(listKept(cache.root).length, 1)
})
