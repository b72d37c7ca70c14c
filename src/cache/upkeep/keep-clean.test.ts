import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { waitFor } from '../../testing/world.js'
import { trashDirectory } from '../cache-layout.js'
import { keepClean } from './keep-clean.js'

test('a service cleans up again and again, tells a failure, and stops when it is told', async (context) => {
  let failures = 1
  const { cache } = await openExampleCache(context, {
    measureDisk: async () => {
      if (failures-- > 0) throw new Error('the disk does not answer')
      return { capacityBytes: 1e12, freeBytes: 1e12, inodesTotal: 1e9, inodesFree: 1e9 }
    },
  })
  const left = (name: string) => join(trashDirectory(cache.root), name)
  const notes: string[] = []
  const stop = keepClean(cache, {
    intervalMs: 5,
    stopping: context.signal,
    note: (sentence) => notes.push(sentence),
  })
  context.after(stop)
  for (const name of ['first', 'second']) {
    mkdirSync(left(name), { recursive: true })
    await waitFor(`${name} to be removed`, async () => !existsSync(left(name)))
  }
  assert.deepEqual(notes, ['cannot clean up the cache: the disk does not answer'])
  await stop()
  mkdirSync(left('third'))
  await new Promise((resolve) => setTimeout(resolve, 25))
  assert.ok(existsSync(left('third')), 'it was stopped')
})

test('between two cleanups it evicts idle copies while others fill the disk', async (context) => {
  const disk = { capacityBytes: 1e12, inodesTotal: 0, inodesFree: 0 }
  let freeBytes = 1e12
  const { cache, makeDataset, prepare } = await openExampleCache(context, {
    policy: { minFreeBytes: 1e9 },
    measureDisk: async () => ({ ...disk, freeBytes }),
  })
  const { leaseId } = await prepare(makeDataset('flowers'))
  await cache.record.releaseUses({ leaseId }, cache.nowMs())
  const stop = keepClean(cache, {
    intervalMs: 3_600_000,
    lookMs: 5,
    stopping: context.signal,
    note: assert.fail,
  })
  context.after(stop)
  freeBytes = 0
  await waitFor('the copy to go', async () => (await cache.record.listCopies({}, cache.nowMs())).length === 0)
})

test('a cleanup under way ends before its next action when the agent stops, and tells nothing', async (context) => {
  const stopping = new AbortController()
  const { cache } = await openExampleCache(context)
  for (const name of ['one', 'two']) mkdirSync(join(trashDirectory(cache.root), name), { recursive: true })
  const { listPlaces } = cache.record
  let plans = 0
  const record = {
    ...cache.record,
    listPlaces: async (node: string) => {
      plans++
      stopping.abort('the agent stops')
      return listPlaces(node)
    },
  }
  const stop = keepClean(
    { ...cache, record },
    { intervalMs: 1, stopping: stopping.signal, note: assert.fail },
  )
  await waitFor('a cleanup to begin', async () => plans > 0)
  await stop()
  assert.equal(readdirSync(trashDirectory(cache.root)).length, 2)
})
