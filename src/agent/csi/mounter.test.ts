import assert from 'node:assert/strict'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { test } from 'node:test'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { makeMemoryMounter } from '../../testing/memory-mounter.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { BindMounter } from './mounter.js'
import { LinkedMounter, serveMounts } from './mounter-link.js'

const VOLUME = 'pods/u/volumes/kubernetes.io~csi/data/mount'

test('the mounter mounts copies into volumes of pods, and nothing else anywhere else', async (context) => {
  const root = await temporaryDirectory(context)
  const mounter = new BindMounter({ root, kubelet: '/kubelet', driver: 'dsc.io' })
  mkdirSync(join(root, 'copies'))
  symlinkSync('/etc', join(root, 'copies/link'))
  const refused = { code: 'USAGE', message: /expected a CSI volume of a pod below/ }
  for (const target of [
    '/etc',
    '/kubelet/pods/u/volumes/kubernetes.io~csi/data',
    '/kubelet/pods/u/volumes/kubernetes.io~empty-dir/data/mount',
    '/kubelet/pods/u/volumes/kubernetes.io~csi/../mount',
    '/kubelet/pods/u/volumes/kubernetes.io~csi/data/mount/more',
    `/kubelet2/${VOLUME}`,
  ]) {
    await assert.rejects(mounter.mount(join(root, 'copies'), target), refused, target)
    await assert.rejects(mounter.unmount(target), refused, target)
  }
  for (const [source, code] of [
    ['/etc', 'CACHE_ROOT_INVALID'],
    [join(root, 'copies/link'), 'CACHE_ROOT_INVALID'],
    [`${root}/copies/../../etc`, 'CACHE_ROOT_INVALID'],
    [join(root, 'copies/missing'), 'COPY_NOT_FOUND'],
  ] as const)
    await assert.rejects(mounter.mount(source, `/kubelet/${VOLUME}`), { code }, source)
})

test('the mounter refuses a volume of another driver, and one whose note is damaged', async (context) => {
  const root = await temporaryDirectory(context)
  const mounter = new BindMounter({ root, kubelet: root, driver: 'dsc.io' })
  const target = join(root, VOLUME)
  mkdirSync(target, { recursive: true })
  for (const [data, found] of [
    ['{"driverName":"disks.example"}', 'disks.example'],
    ['{"driverName":', 'damaged'],
    ['null', 'damaged'],
  ] as const) {
    writeFileSync(join(target, '../vol_data.json'), data)
    const refused = { code: 'USAGE', message: new RegExp(`expected a volume of dsc.io, found .*${found}`) }
    await assert.rejects(mounter.mount(join(root, 'missing'), target), refused)
    await assert.rejects(mounter.unmount(target), refused)
    assert.ok(existsSync(target))
  }
  writeFileSync(join(target, '../vol_data.json'), '{"driverName":"dsc.io"}')
  await mounter.unmount(target)
  assert.equal(existsSync(target), false)
})

test('orders and failures cross the link, and an end of either side ends what waits', async () => {
  const [here, there] = duplexPair()
  const memory = makeMemoryMounter()
  const failing = {
    ...memory,
    unmount: () => Promise.reject(new DscError('USAGE', 'not there', { hint: 'here' })),
  }
  const served = serveMounts(there, failing)
  let isGone = false
  const linked = await LinkedMounter.open(here, () => {
    isGone = true
  })
  await Promise.all([linked.mount('/a', '/x'), linked.mount('/b', '/y')])
  assert.deepEqual(
    [...memory.mounts],
    [
      ['/x', '/a'],
      ['/y', '/b'],
    ],
  )
  await assert.rejects(linked.unmount('/x'), { code: 'USAGE', message: 'not there', hint: 'here' })
  here.destroy()
  await served
  assert.equal(isGone, true)
  await assert.rejects(linked.mount('/a', '/x'), { code: 'INTERRUPTED' })
})

test('anything but an order ends the link', async () => {
  const [here, there] = duplexPair()
  const served = serveMounts(there, makeMemoryMounter())
  here.write('{"id":1,"verb":"run","target":"/x"}\n')
  await served
  assert.equal(there.destroyed, true)
})

test('a refusal of the kernel crosses the link as a failure, and a defect of the mounter as a defect', async () => {
  const [here, there] = duplexPair()
  const memory = makeMemoryMounter()
  const busy = Object.assign(new Error('EBUSY: rmdir'), { code: 'EBUSY', syscall: 'rmdir', path: '/x' })
  const served = serveMounts(there, {
    ...memory,
    mount: () => Promise.reject(new TypeError('undefined')),
    unmount: () => Promise.reject(busy),
  })
  const linked = await LinkedMounter.open(here, () => {})
  await assert.rejects(linked.unmount('/x'), {
    code: 'IO_FAILED',
    message: '/x: this machine refuses it (EBUSY: rmdir)',
  })
  await assert.rejects(linked.mount('/a', '/x'), (error) => !isDscError(error))
  here.destroy()
  await served
})

test('a mount or unmount that the kernel refuses is no fault of the configuration', async (context) => {
  const root = await temporaryDirectory(context)
  const mounter = new BindMounter({ root, kubelet: root, driver: 'dsc.io' })
  mkdirSync(join(root, 'copies'))
  const target = join(root, VOLUME)
  mkdirSync(join(target, 'full'), { recursive: true })
  await assert.rejects(mounter.unmount(target), { code: 'ENOTEMPTY' })
  const { PATH } = process.env
  context.after(() => {
    process.env.PATH = PATH
  })
  process.env.PATH = root
  await assert.rejects(mounter.mount(join(root, 'copies'), target), {
    code: 'CONFIG_INVALID',
    hint: 'apt-get install mount',
  })
  writeFileSync(join(root, 'mount'), '#!/bin/sh\necho busy >&2; exit 32\n', { mode: 0o700 })
  await assert.rejects(mounter.mount(join(root, 'copies'), target), {
    code: 'IO_FAILED',
    message: 'mount ended with 32: busy',
  })
})
