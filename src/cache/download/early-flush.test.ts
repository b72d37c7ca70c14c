import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEarlyFlush } from './early-flush.js'

const MIB = 1024 * 1024

/** Flushes that end on command. */
function makeFlusher() {
  const running: ((isFlushed: boolean) => void)[] = []
  let begun = 0
  const flushFileSystem = () =>
    new Promise<boolean>((resolve) => {
      begun += 1
      running.push(resolve)
    })
  return { flushFileSystem, begun: () => begun, end: (isFlushed: boolean) => running.shift()!(isFlushed) }
}

test('an early flush begins when enough is written, and only one at a time', async () => {
  const disk = makeFlusher()
  const flush = startEarlyFlush('/', disk.flushFileSystem)
  flush.note(200 * MIB, 1)
  assert.equal(disk.begun(), 0)
  flush.note(60 * MIB, 1)
  assert.equal(disk.begun(), 1)
  flush.note(300 * MIB, 1)
  assert.equal(disk.begun(), 1)
  disk.end(true)
  await new Promise(setImmediate)
  flush.note(0, 1)
  assert.equal(disk.begun(), 2)
  disk.end(true)
  assert.equal(await flush.finish(), true)
})

test('many small files are enough, too', () => {
  const disk = makeFlusher()
  const flush = startEarlyFlush('/', disk.flushFileSystem)
  for (let file = 0; file < 20_000; file += 1) flush.note(0, 1)
  assert.equal(disk.begun(), 1)
})

test('a flush that failed is told at the end, and none is tried after it', async () => {
  const disk = makeFlusher()
  const flush = startEarlyFlush('/', disk.flushFileSystem)
  flush.note(300 * MIB, 1)
  disk.end(false)
  await new Promise(setImmediate)
  flush.note(300 * MIB, 1)
  assert.equal(disk.begun(), 1)
  assert.equal(await flush.finish(), false)
})
