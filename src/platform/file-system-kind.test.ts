import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileSystemKindOf, readFileSystemKind } from './file-system-kind.js'

for (const { type, name, isNetwork } of [
  { type: 0xef53, name: 'ext4', isNetwork: false },
  { type: 0x794c7630, name: 'overlay', isNetwork: false },
  { type: 0x6969, name: 'nfs', isNetwork: true },
  { type: 0x0bd00bd0, name: 'lustre', isNetwork: true },
  { type: 0x65735546, name: 'fuse', isNetwork: true },
  { type: 0xff534d42 - 2 ** 32, name: 'cifs', isNetwork: true },
  { type: 0x12345, name: '0x12345', isNetwork: false },
]) {
  test(`fileSystemKindOf calls ${type} ${name}, ${isNetwork ? 'network' : 'local'}`, () => {
    assert.deepEqual(fileSystemKindOf(type), { name, isNetwork })
  })
}

test('readFileSystemKind knows /proc is none of the file systems data lives on', async () => {
  assert.deepEqual(await readFileSystemKind('/proc'), { name: '0x9fa0', isNetwork: false })
})
