import assert from 'node:assert/strict'
import { chmodSync, linkSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { FileSink, preallocate } from './file-sink.js'
import { KeptFolders } from './kept-folders.js'

const directory = mkdtempSync(join(tmpdir(), 'dsc-sink-'))
after(() => rmSync(directory, { recursive: true, force: true }))

const folders = new KeptFolders()
const KIB = 1024
const BODY = Buffer.from(Array.from({ length: 900 * KIB }, (_, index) => (index * 31) >> 3))

/** Writes the body from one buffer that each chunk overwrites, as sources do. */
function pour(sink: FileSink, chunkBytes: readonly number[], bytes: number): void {
  const shared = Buffer.alloc(512 * KIB)
  for (let at = 0, turn = 0; at < bytes; turn += 1) {
    const length = Math.min(chunkBytes[turn % chunkBytes.length]!, bytes - at)
    BODY.copy(shared, 0, at, at + length)
    sink.write(shared.subarray(0, length))
    shared.fill(0)
    at += length
  }
  sink.finish()
}

for (const { name, chunkBytes } of [
  { name: 'small', chunkBytes: [16 * KIB] },
  { name: 'large', chunkBytes: [256 * KIB] },
  { name: 'small and large', chunkBytes: [3, 100 * KIB, 16 * KIB, 1, 70 * KIB, 50 * KIB] },
]) {
  test(`a file is what came in ${name} chunks`, () => {
    const path = join(directory, name, 'file')
    pour(new FileSink(path, { offset: 0, isWhole: true, folders }), chunkBytes, BODY.length)
    assert.ok(readFileSync(path).equals(BODY))
    assert.equal(statSync(path).mode & 0o777, 0o444)
  })
}

test('a range is written where it belongs and leaves the rest', () => {
  const path = join(directory, 'range')
  preallocate(path, 300 * KIB)
  pour(new FileSink(path, { offset: 100 * KIB, isWhole: false, folders }), [16 * KIB], 150 * KIB)
  const expected = Buffer.concat([
    Buffer.alloc(100 * KIB),
    BODY.subarray(0, 150 * KIB),
    Buffer.alloc(50 * KIB),
  ])
  assert.ok(readFileSync(path).equals(expected))
})

test('a file that goes on has none of the bytes that the attempt before it still writes', () => {
  const path = join(directory, 'continued')
  const asleep = new FileSink(path, { offset: 0, isWhole: true, folders })
  asleep.write(BODY.subarray(0, 100 * KIB))
  const sink = new FileSink(path, { offset: 0, isWhole: true, folders })
  const seen: Buffer[] = []
  sink.goOn(96 * KIB, (chunk) => seen.push(Buffer.from(chunk)))
  asleep.write(BODY.subarray(100 * KIB, 200 * KIB))
  asleep.leave()
  sink.leave()
  assert.ok(readFileSync(path).equals(BODY.subarray(0, 96 * KIB)))
  assert.ok(Buffer.concat(seen).equals(BODY.subarray(0, 96 * KIB)))
  assert.equal(statSync(path).mode & 0o777, 0o444)
})

test('small chunks are written up to boundaries of blocks, wherever the first one ends', () => {
  const path = join(directory, 'blocks')
  const sink = new FileSink(path, { offset: 0, isWhole: true, folders })
  const sizes = new Set<number>()
  for (let at = 0; at < BODY.length; at += 16 * KIB - 411) {
    sink.write(BODY.subarray(at, at + 16 * KIB - 411))
    sizes.add(statSync(path).size)
  }
  sink.finish()
  assert.deepEqual([...sizes], [16 * KIB - 411, 256 * KIB, 512 * KIB, 768 * KIB])
  assert.ok(readFileSync(path).equals(BODY))
})

test('a file without bytes exists', () => {
  const path = join(directory, 'empty')
  new FileSink(path, { offset: 0, isWhole: true, folders }).finish()
  assert.equal(statSync(path).size, 0)
})

test('what gathered for a file that failed is not found in the next', () => {
  const failed = new FileSink(join(directory, 'failed'), { offset: 0, isWhole: true, folders })
  for (let chunk = 0; chunk < 3; chunk += 1) failed.write(Buffer.alloc(16 * KIB, 7))
  failed.discard()
  const path = join(directory, 'next')
  pour(new FileSink(path, { offset: 0, isWhole: true, folders }), [16 * KIB], 100 * KIB)
  assert.ok(readFileSync(path).equals(BODY.subarray(0, 100 * KIB)))
})

for (const { name, write } of [
  {
    name: 'a whole file',
    write: (path: string) =>
      pour(new FileSink(path, { offset: 0, isWhole: true, folders }), [16 * KIB], 100 * KIB),
  },
  {
    name: 'a file in parts',
    write: (path: string) => {
      preallocate(path, 100 * KIB)
      pour(new FileSink(path, { offset: 0, isWhole: false, folders }), [16 * KIB], 100 * KIB)
    },
  },
]) {
  test(`${name} that a killed attempt left as a link to another copy's file leaves that file alone`, () => {
    const [other, path] = [join(directory, `other of ${name}`), join(directory, `link of ${name}`)]
    writeFileSync(other, 'of another copy', { mode: 0o444 })
    linkSync(other, path)
    write(path)
    assert.equal(readFileSync(other, 'utf8'), 'of another copy')
    assert.equal(statSync(other).mode & 0o777, 0o444)
    assert.ok(readFileSync(path).equals(BODY.subarray(0, 100 * KIB)))
  })
}

test('parts of a file that a killed attempt made read-only are kept and can be written again', () => {
  const path = join(directory, 'complete')
  preallocate(path, 100 * KIB)
  pour(new FileSink(path, { offset: 0, isWhole: false, folders }), [16 * KIB], 100 * KIB)
  chmodSync(path, 0o444)
  preallocate(path, 100 * KIB)
  assert.ok(readFileSync(path).equals(BODY.subarray(0, 100 * KIB)))
  assert.equal(statSync(path).mode & 0o777, 0o644)
})
