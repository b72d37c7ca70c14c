import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordStore } from '../../records/contract/record-store.js'
import { openLocalCopies } from './local-copies.js'

/** The copies of a node that has none, and the datasets that the record was asked about. */
function openCopies() {
  const asked: string[] = []
  const record: Partial<RecordStore> = {
    nowMs: () => 0,
    listEvents: async () => [],
    listCopies: async ({ dataset }) => {
      asked.push(dataset!)
      return []
    },
  }
  return { asked, copies: openLocalCopies(record as RecordStore, 'node-a') }
}

test('the record is not asked for what can be no dataset', async () => {
  const { asked, copies } = openCopies()
  for (const name of ['x'.repeat(101), 'a\0b', '../flowers', ' '])
    assert.deepEqual(await copies.list(name), [])
  assert.deepEqual(asked, [])
})

test('who asks for one dataset after the other does not fill the memory', async () => {
  const { asked, copies } = openCopies()
  for (const name of ['flowers', 'flowers']) await copies.list(name)
  assert.deepEqual(asked, ['flowers'])
  await Promise.all(Array.from({ length: 10_000 }, (_, index) => copies.list(`d${index}`)))
  await copies.list('flowers')
  assert.deepEqual([asked.length, asked.at(-1)], [10_002, 'flowers'])
})
