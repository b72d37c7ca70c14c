import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ArrivalServer } from '../../cache/arrivals/arrival-server.js'
import { OrderOfNeed } from '../../cache/arrivals/order-of-need.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { StagerConnections } from './stager-connections.js'

test('all who ask share one connection to a stager, and nothing is kept of it once the stager has gone', async (t) => {
  const folder = await temporaryDirectory(t)
  const open = () =>
    ArrivalServer.open({
      ...{ copyDirectory: folder, need: new OrderOfNeed(1, [1]), idOf: () => 1 },
      isWritten: () => false,
      onWant: () => {},
    })
  const server = await open()
  const stagers = new StagerConnections()
  t.after(() => stagers.close())
  const [one, other] = await Promise.all([stagers.find(folder), stagers.find(folder)])
  assert.ok(one)
  assert.equal(one, other)
  assert.equal(await one.want('a'), 'there')
  assert.equal(stagers.size, 1)
  server.close()
  await one.ended
  assert.equal(stagers.size, 0)
  assert.equal(await stagers.find(folder), undefined)
  assert.equal(stagers.size, 0)
  const next = await open()
  t.after(() => next.close())
  assert.equal(await (await stagers.find(folder))?.want('a'), 'there')
})

test('nothing is kept of folders in which nobody stages', async (t) => {
  const stagers = new StagerConnections()
  assert.equal(await stagers.find(join(await temporaryDirectory(t), 'published')), undefined)
  assert.equal(stagers.size, 0)
})

test('a folder that cannot be opened has no stager', async (t) => {
  const file = join(await temporaryDirectory(t), 'file')
  writeFileSync(file, '')
  const stagers = new StagerConnections()
  assert.equal(await stagers.find(file), undefined)
  assert.equal(stagers.size, 0)
})
