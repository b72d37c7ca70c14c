import assert from 'node:assert/strict'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { TarReader } from './tar-members.js'

/** Makes a header of a tar archive; `kind` is the character for byte 156. */
function header(name: string, size: number, kind: string): Buffer {
  const bytes = Buffer.alloc(512)
  bytes.write(name, 0)
  bytes.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  bytes.write('        ', 148)
  bytes.write(kind, 156)
  bytes.write('ustar\x0000', 257)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return bytes
}

for (const { what, kind } of [
  { what: 'a hard link', kind: '1' },
  { what: 'a symbolic link', kind: '2' },
  { what: 'a device', kind: '3' },
  { what: 'a folder', kind: '5' },
  { what: 'a pipe', kind: '6' },
])
  test(`${what} has no contents in the archive, whatever size its header says`, (context) => {
    const path = join(makeTestFolder(context), 'a.tar')
    const contents = (text: string) => Buffer.concat([Buffer.from(text)], 512)
    const bytes = Buffer.concat([
      ...[header('a', 5, '0'), contents('hello'), header('b', 4096, kind)],
      ...[header('c', 5, '0'), contents('world'), Buffer.alloc(1024)],
    ])
    writeFileSync(path, bytes)
    const file = openSync(path, 'r')
    const members = Array.from(new TarReader(file, bytes.length).members())
    const found = members.filter(({ kind }) => kind === 'file').map(({ name, dataAt }) => [name, dataAt])
    closeSync(file)
    assert.deepEqual(found, [
      ['a', 512],
      ['c', 2048],
    ])
  })
