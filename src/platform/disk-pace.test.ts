import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DiskPace } from './disk-pace.js'

/** A pace whose reads on this thread take a given time, and a log of which thread read. */
function makePace() {
  let atMs = 1000
  const pace = new DiskPace(() => atMs)
  return {
    wait: (ms: number) => {
      atMs += ms
    },
    read: async (tookMs: number) =>
      pace.run(
        () => {
          atMs += tookMs
          return 'here'
        },
        async () => 'elsewhere',
      ),
  }
}

test('what comes from memory is read on this thread', async () => {
  const { read } = makePace()
  for (let i = 0; i < 10; i++) assert.equal(await read(0.1), 'here')
})

test('after a read that waited for the disk, other threads read for twenty times as long', async () => {
  const { read, wait } = makePace()
  assert.equal(await read(10), 'here')
  assert.equal(await read(0.1), 'elsewhere')
  wait(199)
  assert.equal(await read(0.1), 'elsewhere')
  wait(2)
  assert.equal(await read(0.1), 'here')
  assert.equal(await read(0.1), 'here')
})
