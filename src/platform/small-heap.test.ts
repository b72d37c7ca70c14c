import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapSpaceStatistics } from 'node:v8'
import { keepHeapSmallAfterWork } from './small-heap.js'

const newSpaceBytes = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!.space_size

test('what a list lets the space for new objects grow by is given back after it', async () => {
  const heap = keepHeapSmallAfterWork()
  const list: object[] = []
  while (newSpaceBytes() < 2 ** 23) list.push({ name: `${list.length}` })
  list.length = 0
  heap.afterWork(0)
  await sleep(10) // longer, and V8 may have shrunk it by itself
  assert.ok(newSpaceBytes() < 2 ** 22, `${newSpaceBytes()} bytes`)
})
