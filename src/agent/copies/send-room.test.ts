import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SendRoom } from './send-room.js'

const MIB = 1024 * 1024

test('twelve large parts are sent at once, and the next when one of them is over, the first who waits first', async () => {
  const room = new SendRoom()
  for (let sends = 0; sends < 12; sends++) assert.equal(await room.enter(MIB, 0), true)
  const order: string[] = []
  const waits = ['first', 'second'].map(async (name) => {
    assert.equal(await room.enter(MIB, 60_000), true)
    order.push(name)
  })
  room.leave(MIB)
  await waits[0]
  assert.deepEqual(order, ['first'])
  room.leave(MIB)
  await waits[1]
  assert.equal(await room.enter(MIB, 1), false, 'there are twelve again')
})

test('small objects are sent in any number, also after large ones, and what is forced finds room', async () => {
  const room = new SendRoom()
  for (let sends = 0; sends < 12; sends++) await room.enter(MIB, 0)
  for (let sends = 0; sends < 12; sends++) room.leave(MIB)
  for (let sends = 0; sends < 100; sends++) assert.equal(await room.enter(1024, 0), true)
  for (let sends = 0; sends < 12; sends++) room.force(MIB)
  assert.equal(await room.enter(1024, 1), false)
})
