import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { ArenaWriter } from './arena-writer.js'

test('pieces in any order and of any length end where they belong, and what lies between them stays', (context) => {
  const path = join(makeTestFolder(context), 'arena')
  const fd = openSync(path, 'w+')
  context.after(() => closeSync(fd))
  const writer = new ArenaWriter(fd)
  const expected = Buffer.alloc(2_000_000)
  let fill = 1
  for (const [at, length] of [
    [0, 1000],
    [1024, 1000], // a neighbor, after an alignment gap
    [2048, 40_000], // too long to gather
    [42_048, 10],
    [42_200, 10], // too far for a neighbor
    [500_000, 30_000],
    [200, 50], // back again, over earlier bytes
    ...Array.from({ length: 40 }, (_, i) => [600_000 + 30_000 * i, 30_000] as const), // more than is gathered
  ] as const) {
    const bytes = Buffer.alloc(length, fill++)
    writer.write(bytes, at)
    bytes.copy(expected, at)
  }
  writer.flush()
  const written = readFileSync(path)
  const isSame = (from: number, to: number) => written.subarray(from, to).equals(expected.subarray(from, to))
  assert.ok(isSame(0, 1000))
  assert.ok(isSame(1024, written.length))
})
