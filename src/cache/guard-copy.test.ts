import assert from 'node:assert/strict'
import { statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openExampleCache } from '../testing/example-cache.js'
import { evictCopies } from './eviction/evict-copies.js'
import { guardCopies } from './guard-copy.js'
import { listKept } from './kept-copies.js'

test('copies follow dsc.yaml when a service starts: closed to others, and open again', async (context) => {
  const { cache, makeDataset, prepare } = await openExampleCache(context)
  const [faces, flowers] = [makeDataset('faces'), makeDataset('flowers')]
  const copies = [(await prepare(faces)).copy, (await prepare(flowers)).copy]
  const look = async (readers: readonly string[] | undefined) => {
    await guardCopies({ ...cache, declared: [{ ...faces, readers }, flowers] }, assert.fail)
    return copies.map(({ directory }) => (statSync(directory).mode & 0o007) !== 0)
  }
  assert.deepEqual(await look(undefined), [true, true])
  assert.deepEqual(await look(['user:ada']), [false, true])
  assert.deepEqual(await look(undefined), [true, true])
})

test('an evicted copy in the trash follows dsc.yaml, too', async (context) => {
  const { cache, makeDataset, prepare } = await openExampleCache(context)
  const faces = makeDataset('faces')
  const { leaseId } = await prepare(faces)
  await cache.record.releaseUses({ leaseId }, cache.nowMs())
  await evictCopies(cache, { kind: 'datasets', names: ['faces'] }, 'ada')
  const [kept] = listKept(cache.root)
  const declared = [{ ...faces, readers: ['user:ada'] }]
  symlinkSync(kept!.name, join(cache.root, 'trash', 'kept-1-1-1-link'))
  const notes: string[] = []
  await guardCopies({ ...cache, declared }, (sentence) => void notes.push(sentence))
  assert.equal(statSync(join(cache.root, 'trash', kept!.name)).mode & 0o007, 0)
  assert.match(notes.join(), /^readers of kept-1-1-1-link: .*symbolic link/)
})

test('a copy that is gone, or is not where a cache has copies, is left alone', async (context) => {
  const { cache, makeDataset, prepare } = await openExampleCache(context)
  const faces = makeDataset('faces')
  const { copy } = await prepare(faces)
  const notes: string[] = []
  const guard = (directory: string) => {
    const record = {
      ...cache.record,
      listCopies: async () => [{ ...copy, directory, referenceCount: 0, isBeingStaged: false }],
    }
    const declared = [{ ...faces, readers: ['user:ada'] }]
    return guardCopies({ ...cache, record, declared }, (sentence) => void notes.push(sentence))
  }
  await guard(`${cache.root}/copies/faces/gone`)
  assert.deepEqual(notes, [])
  const before = statSync('/etc').mode
  await guard('/etc')
  assert.match(notes.join(), /readers of faces: \/etc is not below/)
  assert.equal(statSync('/etc').mode, before)
})
