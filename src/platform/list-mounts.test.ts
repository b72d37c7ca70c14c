import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMounts, parseMounts } from './list-mounts.js'

test('parseMounts reads paths with spaces and never names a network file system', () => {
  const text = [
    '/dev/sda1 / ext4 rw 0 0',
    'server:/x /home nfs4 rw 0 0',
    'x@tcp:/fs /lustre lustre rw 0 0',
    '/dev/sdb1 /mnt/my\\040disk xfs rw 0 0',
    'proc /proc proc rw 0 0',
    '',
  ].join('\n')
  assert.deepEqual(parseMounts(text), ['/', '/mnt/my disk'])
})

test('parseMounts knows the root of a chroot, which no line names, but never asks one on a network', () => {
  assert.deepEqual(parseMounts('proc /proc proc rw 0 0\n/dev/sda1 /home ext4 ro 0 0\n'), ['/', '/home'])
  assert.deepEqual(parseMounts('server:/x / nfs4 rw 0 0\n'), [])
})

test('listMounts finds the root of this machine with its size', {
  skip: process.platform !== 'linux',
}, async () => {
  const root = (await listMounts()).find(({ path }) => path === '/')
  assert.ok(root && root.usage.capacityBytes > 0)
})
