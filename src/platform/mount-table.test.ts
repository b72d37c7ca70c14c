import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMountTable } from './mount-table.js'

test('the table of mounts is read, with odd names and options of the mount alone', () => {
  const text = [
    '29 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw',
    '31 29 254:1 /cache/a /pods/with\\040space ro,nosuid,nodev,relatime shared:1 master:2 - ext4 /dev/vda rw',
    '32 29 0:5 / /ro rw - tmpfs tmpfs ro,size=1k',
    '',
  ].join('\n')
  assert.deepEqual(parseMountTable(text), [
    { path: '/', isReadOnly: false },
    { path: '/pods/with space', isReadOnly: true },
    { path: '/ro', isReadOnly: false },
  ])
})
