import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { WaitingThreads } from './waiting-threads.js'

const KIB = 1024

test('threads wait as soon as what is listed is worth them, and are started once', async () => {
  const waiting = new WaitingThreads()
  waiting.expect({ files: 2, bytes: 2 * KIB, concurrency: 64 })
  assert.equal(waiting.count, 0)
  waiting.expect({ files: 1000, bytes: 10_000 * KIB, concurrency: 1 })
  waiting.expect({ files: 2000, bytes: 20_000 * KIB, concurrency: 1 })
  assert.equal(waiting.count, 1)
  waiting.expect({ files: 1000, bytes: 1_000_000 * KIB, concurrency: 64 })
  assert.equal(waiting.count, Math.min(availableParallelism(), 8))
  await waiting.close()
  assert.equal(waiting.count, 0)
})

test('a few threads load their code before anything is listed, and count among those that the listing is worth', async () => {
  const waiting = new WaitingThreads()
  waiting.begin()
  const early = Math.max(1, Math.min(availableParallelism() - 1, 2))
  assert.equal(waiting.count, early)
  waiting.expect({ files: 2, bytes: 2 * KIB, concurrency: 64 })
  assert.equal(waiting.count, early)
  waiting.expect({ files: 1000, bytes: 1_000_000 * KIB, concurrency: 64 })
  assert.equal(waiting.count, Math.min(availableParallelism(), 8))
  await waiting.close()
})
