import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import type { Cache } from '../../cache/cache.js'
import { DscError } from '../../failure/dsc-error.js'
import { HELD, LATER, makeCsiNode, REQUEST, TARGET } from '../../testing/csi-node.js'

const until = async (isTrue: () => boolean) => {
  while (!isTrue()) await new Promise(setImmediate)
}

/** Lets everything run that waits for nothing but the record. */
const someTurns = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
}

/** A node that gives its only volume back, and whose record answers no list of leases until the test resolves `held`. */
async function beginEnd(context: TestContext) {
  const node = await makeCsiNode(context)
  const held: PromiseWithResolvers<void>[] = []
  let isHolding = false
  const record: Cache['record'] = Object.create(node.cache.record, {
    listLeases: {
      async value(...words: Parameters<Cache['record']['listLeases']>) {
        const gate = Promise.withResolvers<void>()
        if (isHolding) {
          held.push(gate)
          await gate.promise
        }
        return node.cache.record.listLeases(...words)
      },
    },
  })
  const volumes = node.start({ ...node.cache, record })
  await volumes.publish(REQUEST, LATER)
  isHolding = true
  const ended = volumes.unpublish(TARGET)
  await until(() => held.length > 0)
  const holdNoMore = () => {
    isHolding = false
  }
  return { ...node, volumes, ended, held, holdNoMore }
}

test('the late end of a volume takes nothing from the next one at its path', async (context) => {
  const { volumes, ended, held, holdNoMore, leases, notes, mounter } = await beginEnd(context)
  const published = volumes.publish(REQUEST, LATER)
  await someTurns()
  holdNoMore()
  held.at(-1)!.resolve()
  await published
  held[0]!.resolve()
  await ended
  await someTurns() // a call waits only a while for its end, which may still be under way
  assert.deepEqual([await leases(), notes().length, mounter.mounts.size], [HELD, 1, 1])
})

test('a volume that ends leaves the lease to a second one that its pod got in the meantime', async (context) => {
  const { volumes, ended, held, holdNoMore, leases } = await beginEnd(context)
  holdNoMore()
  await volumes.publish({ ...REQUEST, volumeId: 'csi-2', target: '/pods/u-1/more' }, LATER)
  held[0]!.resolve()
  await ended
  assert.deepEqual(await leases(), HELD)
})

test('a volume that is asked for while its path is unmounted is given back with it', async (context) => {
  const { start, source, mounter, leases, notes } = await makeCsiNode(context)
  const letGo = source.hold('a.txt')
  const volumes = start()
  const { unmount } = mounter
  const unmounting = Promise.withResolvers<void>()
  mounter.unmount = async (target) => {
    await unmounting.promise
    await unmount(target)
  }
  const ended = volumes.unpublish(TARGET)
  const published = assert.rejects(volumes.publish(REQUEST, LATER), { code: 'INTERRUPTED' })
  await until(() => source.fetches('a.txt') > 0)
  unmounting.resolve()
  await Promise.all([published, ended])
  letGo()
  assert.deepEqual([await leases(), notes(), mounter.mounts.size], [[], [], 0])
})

test('a volume that cannot be mounted is given up, and the next call starts over', async (context) => {
  const { start, mounter, leases, notes } = await makeCsiNode(context)
  const { mount } = mounter
  mounter.mount = () => Promise.reject(new DscError('IO_FAILED', 'busy'))
  const volumes = start()
  await assert.rejects(volumes.publish(REQUEST, LATER), { message: 'busy' })
  assert.deepEqual([await leases(), notes()], [[], []])
  mounter.mount = async (source, target) => {
    await mount(source, target)
    throw new DscError('IO_FAILED', 'half done')
  }
  await assert.rejects(volumes.publish(REQUEST, LATER), { message: 'half done' })
  assert.deepEqual(await leases(), HELD, 'what is mounted stays leased')
  mounter.mount = mount
  await volumes.publish(REQUEST, LATER)
  assert.deepEqual(await leases(), HELD)
})

test('a volume is given back even if its end cannot be noted', async (context) => {
  const { start, leases, told, folder } = await makeCsiNode(context)
  const volumes = start()
  await volumes.publish(REQUEST, LATER)
  rmSync(folder, { recursive: true })
  await volumes.unpublish(TARGET)
  assert.deepEqual(await leases(), [])
  assert.equal(told.length, 1)
  assert.match(told[0]!, /ENOENT/)
})

test('an agent that stops leaves the volumes that it is staging to the next one', async (context) => {
  const { start, source, notes } = await makeCsiNode(context)
  source.hold('a.txt')
  const volumes = start()
  const published = assert.rejects(volumes.publish(REQUEST, LATER), { code: 'INTERRUPTED' })
  await until(() => source.fetches('a.txt') > 0)
  volumes.stop()
  await published
  assert.deepEqual(
    notes().map(({ target, isOver }) => [target, isOver]),
    [[TARGET, undefined]],
  )
  source.release()
  await start().publish(REQUEST, LATER)
})
