import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cache } from '../../cache/cache.js'
import { DscError } from '../../failure/dsc-error.js'
import { SourceFailure } from '../../failure/source-failure.js'
import { HELD, LATER, makeCsiNode, POD, REQUEST, TARGET } from '../../testing/csi-node.js'
import { openHeldSource } from '../../testing/held-source.js'

test('a volume is leased to its pod without an end, mounted, and given back, any number of times', async (context) => {
  const { start, mounter, leases, notes, late } = await makeCsiNode(context)
  const volumes = start()
  for (let time = 0; time < 2; time++) await volumes.publish(REQUEST, LATER)
  assert.deepEqual(late, [], 'kubelet need not be told')
  assert.deepEqual(await leases(), HELD)
  assert.match(mounter.mounts.get(TARGET)!, /\/copies\/flowers\/.*\/files$/)
  assert.deepEqual([...volumes.listPods()], ['u-1'])
  assert.equal(volumes.findMounted('csi-1', TARGET)?.target, TARGET)
  for (let time = 0; time < 2; time++) await volumes.unpublish(TARGET)
  assert.deepEqual([await leases(), [...mounter.mounts], notes(), [...volumes.listPods()]], [[], [], [], []])
})

test('a call is held for as long as its deadline allows, then told how far the staging is, which goes on', async (context) => {
  const { start, source, leases, mounter, late } = await makeCsiNode(context)
  const letGo = source.hold('a.txt')
  const volumes = start()
  await assert.rejects(volumes.publish(REQUEST, Date.now()), {
    status: 'ABORTED',
    message: /^flowers: .*goes on$/,
  })
  assert.deepEqual([await leases(), mounter.mounts.size], [HELD, 0])
  const [one, two] = [volumes.publish(REQUEST, LATER), volumes.publish(REQUEST, LATER)]
  letGo()
  await Promise.all([one, two])
  assert.equal(source.fetches('a.txt'), 1)
  assert.equal(mounter.mounts.size, 1)
  assert.deepEqual(new Set(late), new Set([REQUEST.pod.name]), 'kubelet may pause by now')
})

test('a call is told at once, and once, that the source fails, and the staging goes on', async (context) => {
  const failing = openHeldSource({ 'a.txt': 'sample' })
  context.after(() => failing.release())
  const letGo = failing.holdListing()
  const { start, mounter } = await makeCsiNode(context, {
    openSource: async () => ({
      ...failing,
      async *list(options) {
        options.onRetry?.(
          new SourceFailure('SOURCE_UNREACHABLE', 'no connection to http://s3.example', {
            isTransient: true,
          }),
          3,
        )
        yield* failing.list(options)
      },
    }),
  })
  const volumes = start()
  const refusal = {
    status: 'UNAVAILABLE',
    message: 'flowers: no connection to http://s3.example; dsc tries again',
  }
  await assert.rejects(volumes.publish(REQUEST, LATER), refusal)
  await assert.rejects(volumes.publish(REQUEST, Date.now()), refusal)
  const held = volumes.publish(REQUEST, LATER)
  letGo()
  await held
  assert.equal(mounter.mounts.size, 1)
  assert.equal(failing.listings(), 1)
})

test('a volume that is given back while it is staged leaves nothing behind', async (context) => {
  const { start, source, leases, mounter, notes } = await makeCsiNode(context)
  source.hold('a.txt')
  const volumes = start()
  const published = assert.rejects(volumes.publish(REQUEST, LATER), { code: 'INTERRUPTED' })
  while (source.fetches('a.txt') === 0) await new Promise(setImmediate)
  const given = volumes.unpublish(TARGET)
  source.release()
  await Promise.all([published, given])
  assert.deepEqual([await leases(), mounter.mounts.size, notes()], [[], 0, []])
})

test('a pod whose volume was refused is told of when it is mounted: kubelet may pause', async (context) => {
  const readable = openHeldSource({ 'a.txt': 'sample' })
  let isDenied = true
  const { start, late } = await makeCsiNode(context, {
    async openSource() {
      if (isDenied) throw new DscError('SOURCE_DENIED', 'no')
      return readable
    },
  })
  const volumes = start()
  await assert.rejects(volumes.publish(REQUEST, LATER), { code: 'SOURCE_DENIED' })
  isDenied = false
  await volumes.publish(REQUEST, LATER)
  assert.deepEqual(late, [POD.name])
})

test('a failed volume leaves nothing behind, and another dataset under its path is refused', async (context) => {
  const { start, leases, notes } = await makeCsiNode(context, {
    openSource: async () => {
      throw new DscError('SOURCE_DENIED', 'no')
    },
  })
  const volumes = start()
  await assert.rejects(volumes.publish(REQUEST, LATER), { code: 'SOURCE_DENIED' })
  assert.deepEqual([await leases(), notes()], [[], []])
  const node = await makeCsiNode(context)
  const others = node.start()
  await others.publish(REQUEST, LATER)
  await assert.rejects(others.publish({ ...REQUEST, dataset: 'birds' }, LATER), { status: 'ALREADY_EXISTS' })
  const signed = { ...REQUEST, dataset: 'https://data.example/x.tar?key=abc' }
  await assert.rejects(others.publish(signed, LATER), { message: /with https:\/\/data\.example\/x\.tar$/ })
  await assert.rejects(others.publish({ ...REQUEST, pod: { ...POD, uid: 'u-2' } }, LATER), {
    status: 'ALREADY_EXISTS',
  })
})

test('two volumes of a pod share a lease, which ends with the second', async (context) => {
  const { start, leases } = await makeCsiNode(context)
  const volumes = start()
  await volumes.publish(REQUEST, LATER)
  await volumes.publish({ ...REQUEST, volumeId: 'csi-2', target: '/pods/u-1/more' }, LATER)
  await volumes.unpublish(TARGET)
  assert.deepEqual(await leases(), HELD)
  await volumes.unpublish('/pods/u-1/more')
  assert.deepEqual(await leases(), [])
})

test('after a kill, what is mounted is leased again, and what was given back is released', async (context) => {
  const { start, cache, leases, reconcile, notes } = await makeCsiNode(context)
  await start().publish(REQUEST, LATER)
  await cache.record.releaseUses({}, cache.nowMs())
  const again = start()
  await reconcile(again)
  assert.deepEqual(await leases(), HELD)
  await again.publish(REQUEST, LATER)
  const away = start({
    ...cache,
    record: { ...cache.record, nowMs: cache.nowMs, listLeases: () => Promise.reject(new Error('away')) },
  } as Cache)
  await away.unpublish(TARGET) // answered all the same
  assert.deepEqual(
    [await leases(), notes().map(({ isOver }) => isOver), [...away.listPods()]],
    [HELD, [true], []],
  )
  await reconcile(start())
  assert.deepEqual([await leases(), notes()], [[], []])
})

test('a volume of a pod that never came back after a reboot is forgotten, but not at once', async (context) => {
  const { start, mounter, leases, reconcile, wait } = await makeCsiNode(context)
  await start().publish(REQUEST, LATER)
  mounter.reboot()
  const volumes = start()
  wait(300_000)
  await reconcile(volumes)
  assert.deepEqual(await leases(), HELD)
  wait(1)
  await reconcile(volumes)
  assert.deepEqual([await leases(), [...volumes.listPods()]], [[], []])
})

test('a volume that cannot be unmounted is reported, and forgotten once it can be', async (context) => {
  const { start, mounter, leases, reconcile, wait, told } = await makeCsiNode(context)
  await start().publish(REQUEST, LATER)
  mounter.reboot()
  const volumes = start()
  wait(300_001)
  const { unmount } = mounter
  mounter.unmount = () => Promise.reject(new DscError('IO_FAILED', 'busy'))
  await reconcile(volumes)
  assert.deepEqual([told, await leases()], [['busy'], HELD])
  mounter.unmount = unmount
  await reconcile(volumes)
  assert.deepEqual(await leases(), [])
})

test('a mounted volume is fine while the record is away, and when dsc.yaml no longer has its dataset', async (context) => {
  const { start, cache, told } = await makeCsiNode(context)
  await start().publish(REQUEST, LATER)
  const record = Object.create(cache.record, {
    leaseCopy: { value: () => Promise.reject(new Error('away')) },
  })
  await start({ ...cache, record }).publish(REQUEST, LATER)
  assert.deepEqual(told, ['away'])
  await start(cache, []).publish(REQUEST, LATER)
})
