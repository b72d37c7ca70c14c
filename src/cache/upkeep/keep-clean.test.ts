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
    historyMs: 1e9,
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
    { intervalMs: 1, historyMs: 1e9, stopping: stopping.signal, note: assert.fail },
  )
  await waitFor('a cleanup to begin', async () => plans > 0)
  await stop()
  assert.equal(readdirSync(trashDirectory(cache.root)).length, 2)
})
