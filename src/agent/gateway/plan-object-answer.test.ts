import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planObjectAnswer } from './plan-object-answer.js'

const MODIFIED = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const OBJECT = { sizeBytes: 10, etag: 'abc', modifiedAtMs: MODIFIED }
const whole = { status: 200, offset: 0, length: 10 }
const at = (seconds: number) => new Date(MODIFIED + seconds * 1000).toUTCString()

for (const [headers, answer] of [
  [{}, whole],
  [{ range: 'bytes=2-4' }, { status: 206, offset: 2, length: 3 }],
  [{ range: 'bytes=2-' }, { status: 206, offset: 2, length: 8 }],
  [{ range: 'bytes=-3' }, { status: 206, offset: 7, length: 3 }],
  [{ range: 'bytes=-30' }, { status: 206, offset: 0, length: 10 }],
  [{ range: 'bytes=9-99' }, { status: 206, offset: 9, length: 1 }],
  [{ range: 'bytes=2-18446744073709551615' }, { status: 206, offset: 2, length: 8 }],
  [{ range: 'bytes=10-' }, 'InvalidRange'],
  [{ range: 'bytes=-0' }, 'InvalidRange'],
  [{ range: 'bytes=4-2' }, whole],
  [{ range: 'bytes=0-1,4-5' }, whole],
  [{ range: 'lines=0-1' }, whole],
  [{ range: 'bytes=-' }, whole],
  [{ 'if-match': '"abc"' }, whole],
  [{ 'if-match': '"x", "abc"' }, whole],
  [{ 'if-match': '*' }, whole],
  [{ 'if-match': '"x"' }, 'PreconditionFailed'],
  [{ 'if-match': '"abc"', 'if-unmodified-since': at(-60) }, whole],
  [{ 'if-unmodified-since': at(-60) }, 'PreconditionFailed'],
  [{ 'if-unmodified-since': at(0) }, whole],
  [{ 'if-match': 'W/"abc"' }, 'PreconditionFailed'],
  [{ 'if-unmodified-since': 'Fri Jan  2 03:03:05 2026' }, 'PreconditionFailed'],
  [{ 'if-unmodified-since': '0' }, whole],
  [{ 'if-modified-since': '2030' }, whole],
  [{ 'if-none-match': 'W/"abc"' }, { status: 304 }],
  [{ 'if-none-match': '"x"', 'if-modified-since': at(60) }, whole],
  [{ 'if-modified-since': at(0) }, { status: 304 }],
  [{ 'if-modified-since': 'Fri Jan  2 03:04:05 2026' }, { status: 304 }],
  [{ 'if-modified-since': 'Friday, 02-Jan-26 03:04:05 GMT' }, { status: 304 }],
  [{ 'if-modified-since': at(-60) }, whole],
  [{ 'if-modified-since': 'yesterday' }, whole],
  [
    { range: 'bytes=2-4', 'if-range': '"abc"' },
    { status: 206, offset: 2, length: 3 },
  ],
  [{ range: 'bytes=2-4', 'if-range': '"x"' }, whole],
  [{ range: 'bytes=2-4', 'if-range': 'W/"abc"' }, whole],
] as const)
  test(`an object asked for with ${JSON.stringify(headers)}`, () => {
    if (typeof answer === 'string') assert.throws(() => planObjectAnswer(headers, OBJECT), { code: answer })
    else assert.deepEqual(planObjectAnswer(headers, OBJECT), answer)
  })

test('an empty object has no range, and its refusal says its size, by which clients know it', () => {
  assert.throws(() => planObjectAnswer({ range: 'bytes=0-' }, { ...OBJECT, sizeBytes: 0 }), {
    code: 'InvalidRange',
    details: { RangeRequested: 'bytes=0-', ActualObjectSize: '0' },
  })
})

const MIB = 1024 * 1024
const PARTED = { sizeBytes: 20 * MIB, etag: 'abc-3', modifiedAtMs: MODIFIED }
const EMPTY = { ...OBJECT, sizeBytes: 0 }
const part = (number: number, uploadPartBytes?: number) => ({ number, uploadPartBytes })
for (const [name, object, asked, answer] of [
  ['an object in one piece is its first part', OBJECT, part(1), { status: 206, offset: 0, length: 10 }],
  ['an object in one piece has no second part', OBJECT, part(2), 'InvalidPartNumber'],
  // The AWS CRT (s3torchconnector, Mountpoint) reads empty objects like this.
  ['an empty object has an empty part', EMPTY, part(1), { status: 200, offset: 0, length: 0 }],
  [
    ...(['a part is where the upload had it', PARTED, part(2, 8 * MIB)] as const),
    { status: 206, offset: 8 * MIB, length: 8 * MIB, parts: 3 },
  ],
  [
    ...(['the last part may be shorter', PARTED, part(3, 8 * MIB)] as const),
    { status: 206, offset: 16 * MIB, length: 4 * MIB, parts: 3 },
  ],
  ['there are as many parts as the etag says', PARTED, part(4, 8 * MIB), 'InvalidPartNumber'],
  ['parts of unknown size are not guessed', PARTED, part(1), 'NotImplemented'],
] as const)
  test(name, () => {
    const plan = () => planObjectAnswer({}, object, asked)
    if (typeof answer === 'string') assert.throws(plan, { code: answer })
    else assert.deepEqual(plan(), answer)
  })

test('a part and a range at once are refused', () => {
  assert.throws(() => planObjectAnswer({ range: 'bytes=0-1' }, OBJECT, part(1)), { code: 'InvalidRequest' })
})
