import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  PART_BYTES,
  planPartBytes,
  planParts,
  planSharedPartBytes,
  WHOLE_OBJECT_BYTES,
} from './plan-parts.js'

const MIB = 1024 * 1024

test('planParts covers every byte once and in order', () => {
  fc.assert(
    fc.property(fc.nat(1e9), fc.integer({ min: 1e6, max: 1e8 }), (sizeBytes, partBytes) => {
      let end = 0
      for (const [index, part] of planParts(sizeBytes, partBytes).entries()) {
        assert.deepEqual([part.number, part.offset], [index, end])
        end += part.length
      }
      assert.equal(end, sizeBytes)
    }),
  )
})

test('planParts gives an empty object one empty part', () => {
  assert.deepEqual(planParts(0, 1), [{ number: 0, offset: 0, length: 0 }])
})

for (const { name, sizeBytes, uploadPartBytes, partBytes } of [
  {
    name: 'takes a small object whole',
    sizeBytes: WHOLE_OBJECT_BYTES,
    uploadPartBytes: 8 * MIB,
    partBytes: WHOLE_OBJECT_BYTES,
  },
  {
    name: 'cuts a large one',
    sizeBytes: WHOLE_OBJECT_BYTES + 1,
    uploadPartBytes: null,
    partBytes: PART_BYTES,
  },
  {
    name: 'keeps upload parts, which prove the etag',
    sizeBytes: 100 * MIB,
    uploadPartBytes: 8 * MIB,
    partBytes: 8 * MIB,
  },
  {
    name: 'does not keep tiny upload parts',
    sizeBytes: 100 * MIB,
    uploadPartBytes: MIB,
    partBytes: PART_BYTES,
  },
  {
    name: 'does not keep huge upload parts',
    sizeBytes: 9000 * MIB,
    uploadPartBytes: 5000 * MIB,
    partBytes: PART_BYTES,
  },
]) {
  test(`planPartBytes ${name}`, () => assert.equal(planPartBytes(sizeBytes, uploadPartBytes), partBytes))
}

for (const [datasetBytes, partBytes] of [
  [0, MIB],
  [256 * MIB, MIB],
  [256 * MIB + 1, 2 * MIB],
  [1024 * MIB, 4 * MIB],
  [2 ** 50, 4 * MIB],
] as const)
  test(`planSharedPartBytes cuts ${datasetBytes} bytes into parts of ${partBytes}`, () =>
    assert.equal(planSharedPartBytes(datasetBytes), partBytes))
