import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { createFileTurns, inTurn } from './file-turns.js'

/** Says that it runs, and once `said[2]` is 1 writes what it finds in `said[0]` to `said[1]`, in its turn at `path`. */
const OTHER_THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
const { url, turns, said } = workerData
import(url).then(({ inTurn }) => {
  parentPort.postMessage('runs')
  Atomics.wait(said, 2, 0)
  inTurn(turns, 'path', () => Atomics.store(said, 1, Atomics.load(said, 0)))
})`

test('a thread writes to a file only after the one that is writing to it', async () => {
  const turns = createFileTurns()
  const said = new Int32Array(new SharedArrayBuffer(12))
  const workerData = { url: new URL('./file-turns.js', import.meta.url).href, turns, said }
  const other = new Worker(OTHER_THREAD, { eval: true, workerData })
  await once(other, 'message')
  const states = new Int32Array(turns)
  inTurn(turns, 'path', () => {
    const slot = states.findIndex((state) => state !== 0)
    const taken = states[slot]!
    Atomics.store(said, 2, 1)
    Atomics.notify(said, 2)
    const isAwaited = () => Atomics.load(states, slot) !== taken
    for (let tries = 0; tries < 12_000 && !isAwaited(); tries += 1) Atomics.wait(said, 1, 0, 5)
    assert.ok(isAwaited(), 'the other thread says that it waits')
    Atomics.store(said, 0, 7)
  })
  await once(other, 'exit')
  assert.equal(said[1], 7)
  assert.ok(states.every((state) => state === 0))
})
