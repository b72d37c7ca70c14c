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

/** A sink that shows its bytes to `seen`. */
function openSink(path: string, where: { offset: number; isWhole: boolean }, seen: Buffer[] = []): FileSink {
  return new FileSink(path, {
    ...where,
    length: BODY.length,
    folders,
    beforeWrite: (bytes) => seen.push(Buffer.from(bytes)),
  })
}

/** Writes the body, as sources do: from one buffer that each chunk overwrites, or from the sink's room. */
function pour(
  sink: FileSink,
  chunkBytes: readonly number[],
  bytes: number,
  place: 'elsewhere' | 'in its room' = 'elsewhere',
): void {
  const shared = Buffer.alloc(512 * KIB)
  for (let at = 0, turn = 0; at < bytes; turn += 1) {
    const into = place === 'in its room' ? (sink.room ?? shared) : shared
    const length = Math.min(chunkBytes[turn % chunkBytes.length]!, bytes - at, into.length)
    BODY.copy(into, 0, at, at + length)
    sink.write(into.subarray(0, length))
    shared.fill(0)
    at += length
  }
  sink.finish()
}

for (const { name, chunkBytes } of [
  { name: 'small', chunkBytes: [16 * KIB] },
  { name: 'large', chunkBytes: [256 * KIB] },
  { name: 'small and large', chunkBytes: [3, 100 * KIB, 16 * KIB, 1, 70 * KIB, 50 * KIB] },
])
  for (const place of ['elsewhere', 'in its room'] as const)
    test(`a file is what came in ${name} chunks, read ${place}`, () => {
      const path = join(directory, name, place)
      const seen: Buffer[] = []
      pour(openSink(path, { offset: 0, isWhole: true }, seen), chunkBytes, BODY.length, place)
      assert.ok(readFileSync(path).equals(BODY))
      assert.equal(statSync(path).mode & 0o777, 0o444)
      assert.ok(Buffer.concat(seen).equals(BODY))
    })

test('small chunks are shown in large pieces', () => {
  const seen: Buffer[] = []
  pour(openSink(join(directory, 'pieces'), { offset: 0, isWhole: true }, seen), [16 * KIB], BODY.length)
  const lengths = seen.map((bytes) => bytes.length / KIB)
  assert.deepEqual(lengths, [256, 256, 256, 132])
})

test('a range is written where it belongs and leaves the rest', () => {
  const path = join(directory, 'range')
  preallocate(path, 300 * KIB)
  pour(openSink(path, { offset: 100 * KIB, isWhole: false }), [16 * KIB], 150 * KIB)
  const expected = Buffer.concat([
    Buffer.alloc(100 * KIB),
    BODY.subarray(0, 150 * KIB),
    Buffer.alloc(50 * KIB),
  ])
  assert.ok(readFileSync(path).equals(expected))
})

test('a file that goes on has none of the bytes that the attempt before it still writes', () => {
  const path = join(directory, 'continued')
  const asleep = openSink(path, { offset: 0, isWhole: true })
  asleep.write(BODY.subarray(0, 100 * KIB))
  const seen: Buffer[] = []
  const sink = openSink(path, { offset: 0, isWhole: true }, seen)
  sink.goOn(96 * KIB)
  asleep.write(BODY.subarray(100 * KIB, 200 * KIB))
  asleep.leave()
  sink.leave()
  assert.ok(readFileSync(path).equals(BODY.subarray(0, 96 * KIB)))
  assert.ok(Buffer.concat(seen).equals(BODY.subarray(0, 96 * KIB)))
  assert.equal(statSync(path).mode & 0o777, 0o444)
})

test('small chunks are written up to boundaries of blocks, wherever a large one ends', () => {
  const path = join(directory, 'blocks')
  const sink = openSink(path, { offset: 0, isWhole: true })
  sink.write(BODY.subarray(0, 100 * KIB - 411))
  const sizes = new Set<number>()
  for (let at = 100 * KIB - 411; at < BODY.length; at += 16 * KIB) {
    sink.write(BODY.subarray(at, at + 16 * KIB))
    sizes.add(statSync(path).size)
  }
  sink.finish()
  assert.deepEqual([...sizes], [100 * KIB - 411, 320 * KIB, 576 * KIB, 832 * KIB])
  assert.ok(readFileSync(path).equals(BODY))
})

test('a file without bytes exists', () => {
  const path = join(directory, 'empty')
  openSink(path, { offset: 0, isWhole: true }).finish()
  assert.equal(statSync(path).size, 0)
})

test('what gathered for a file that failed is not found in the next', () => {
  const failed = openSink(join(directory, 'failed'), { offset: 0, isWhole: true })
  for (let chunk = 0; chunk < 3; chunk += 1) failed.write(Buffer.alloc(16 * KIB, 7))
  failed.discard()
  const path = join(directory, 'next')
  pour(openSink(path, { offset: 0, isWhole: true }), [16 * KIB], 100 * KIB)
  assert.ok(readFileSync(path).equals(BODY.subarray(0, 100 * KIB)))
})

for (const { name, write } of [
  {
    name: 'a whole file',
    write: (path: string) => pour(openSink(path, { offset: 0, isWhole: true }), [16 * KIB], 100 * KIB),
  },
  {
    name: 'a file in parts',
    write: (path: string) => {
      preallocate(path, 100 * KIB)
      pour(openSink(path, { offset: 0, isWhole: false }), [16 * KIB], 100 * KIB)
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
  pour(openSink(path, { offset: 0, isWhole: false }), [16 * KIB], 100 * KIB)
  chmodSync(path, 0o444)
  preallocate(path, 100 * KIB)
  assert.ok(readFileSync(path).equals(BODY.subarray(0, 100 * KIB)))
  assert.equal(statSync(path).mode & 0o777, 0o644)
})
