import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { crc32, inflateSync } from 'node:zlib'

const FOLDER = fileURLToPath(new URL('../../fixtures/datasets/digits/', import.meta.url))
const SIDE = 32

/** Checks signature and checksums of a PNG and returns the unpacked size of its image data. */
function unpackedLengthOf(png: Buffer): number {
  assert.equal(png.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n')
  const data: Buffer[] = []
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const body = png.subarray(at + 4, at + 8 + length)
    assert.equal(png.readUInt32BE(at + 8 + length), crc32(body))
    if (body.toString('latin1', 0, 4) === 'IDAT') data.push(body.subarray(4))
    at += 12 + length
  }
  return inflateSync(Buffer.concat(data)).length
}

test('every digit of the fixture is a whole 32 × 32 grayscale PNG in the folder of its label', () => {
  const [header, ...rows] = readFileSync(join(FOLDER, 'labels.csv'), 'utf8').trim().split('\n')
  assert.equal(header, 'file,label')
  assert.equal(rows.length, 1797)
  for (const row of rows) {
    const [file, label] = row.split(',')
    assert.equal(file?.split('/')[0], label)
    assert.equal(unpackedLengthOf(readFileSync(join(FOLDER, file!))), SIDE * (SIDE + 1), file)
  }
})
