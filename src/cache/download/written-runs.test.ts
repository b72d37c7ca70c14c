import assert from 'node:assert/strict'
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import type { ByteRange } from '../arrivals/block-set.js'
import { findWrittenBeginning, findWrittenRuns } from './written-runs.js'

const MIB = 1024 * 1024
const PAGE = 4096
const PART = { offset: 4 * MIB, length: 4 * MIB }
const signal = new AbortController().signal

for (const { name, written, isUnproven = false, runs } of [
  { name: 'nothing of an empty file', written: [], runs: [] },
  {
    name: 'without a checksum no page that may have been cut short, even where more follows',
    isUnproven: true,
    written: [
      { offset: 4 * MIB, length: 2 * MIB - 500 },
      { offset: 6 * MIB, length: MIB },
    ],
    runs: [
      { offset: 4 * MIB, length: 2 * MIB - 2 * PAGE },
      { offset: 6 * MIB, length: MIB - PAGE },
    ],
  },
  {
    name: 'the beginning of a part, but for its last page',
    written: [{ offset: 4 * MIB, length: 2 * MIB + 100 }],
    runs: [{ offset: 4 * MIB, length: 2 * MIB }],
  },
  {
    name: 'runs with a hole between them',
    written: [
      { offset: 4 * MIB, length: MIB },
      { offset: 6 * MIB, length: MIB },
    ],
    runs: [
      { offset: 4 * MIB, length: MIB - PAGE },
      { offset: 6 * MIB, length: MIB - PAGE },
    ],
  },
  {
    name: 'a short beginning, which costs no request of its own',
    written: [{ offset: 4 * MIB, length: 100_000 }],
    runs: [{ offset: 4 * MIB, length: 24 * PAGE }],
  },
  { name: 'no run that is not worth a request', written: [{ offset: 5 * MIB, length: 100_000 }], runs: [] },
  {
    name: 'nothing of the parts around',
    written: [{ offset: 0, length: 12 * MIB }],
    runs: [{ offset: 4 * MIB, length: 4 * MIB - PAGE }],
  },
]) {
  test(`of a part that a killed attempt left, it finds ${name}`, async (context) => {
    const path = await writeObject(context, written)
    assert.deepEqual(await findWrittenRuns(path, PART, { isUnproven, signal }), runs)
  })
}

for (const { name, written, bytes } of [
  { name: 'nothing of an empty part', written: [{ offset: 0, length: 4 * MIB }], bytes: undefined },
  {
    name: 'nothing of a page that may be cut short',
    written: [{ offset: 4 * MIB, length: PAGE }],
    bytes: undefined,
  },
  { name: 'the pages before the last', written: [{ offset: 4 * MIB, length: 100_000 }], bytes: 24 * PAGE },
  {
    name: 'zeros that other bytes follow',
    written: [{ offset: 6 * MIB + 5, length: 1 }],
    bytes: 2 * MIB,
  },
  {
    name: 'all but the end of a full part',
    written: [{ offset: 0, length: 12 * MIB }],
    bytes: 4 * MIB - PAGE,
  },
]) {
  test(`of a part that came in order, it finds ${name}`, async (context) => {
    const path = await writeObject(context, written)
    const expected = bytes === undefined ? [] : [{ offset: PART.offset, length: bytes }]
    assert.deepEqual(await findWrittenBeginning(path, PART, { signal }), expected)
  })
}

async function writeObject(context: TestContext, written: readonly ByteRange[]): Promise<string> {
  const path = join(await temporaryDirectory(context), 'object')
  const file = openSync(path, 'wx')
  ftruncateSync(file, 12 * MIB)
  for (const { offset, length } of written) writeSync(file, Buffer.alloc(length, 7), 0, length, offset)
  closeSync(file)
  return path
}
