import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCodec } from '../../half/codec.js'
import { type FrameHeader, findMismatch, formatHeader, HEADER_BYTES, parseHeader } from './frame.js'
import { FrameReader, READER_SLOTS } from './frame-reader.js'

const HEADER: FrameHeader = {
  rank: 3,
  epoch: 2,
  step: 70_000,
  bucket: 5,
  wireType: 'fp16',
  attempt: 1,
  scales: 0x12345678,
  hop: 4,
  segment: 9,
  bytes: 6,
}
const PAYLOAD = Uint8Array.of(1, 2, 3, 4, 5, 6)

test('the frame header is these bytes: change them only together with the version in frame.ts', () => {
  assert.equal(
    formatHeader(HEADER, PAYLOAD).toString('hex'),
    '4453435802010100000000020001117000000005000000040000000900000006000000031234567881f6772486c8a1c0',
  )
  assert.deepEqual(parseHeader(formatHeader(HEADER, PAYLOAD)), { header: HEADER, crc: 0x81f67724 })
})

test('a damaged or foreign header is refused in words', () => {
  for (const [at, words] of [
    [0, /mark of a dsc frame/],
    [4, /frame version 253/],
    [12, /damaged header/],
  ] as const) {
    const bytes = formatHeader(HEADER, PAYLOAD)
    bytes[at]! ^= 0xff
    const parsed = parseHeader(bytes)
    assert.ok('problem' in parsed)
    assert.match(parsed.problem, words)
  }
})

test('findMismatch names both ranks and the first field in which they differ', () => {
  assert.equal(findMismatch(HEADER, HEADER, 1), undefined)
  assert.equal(
    findMismatch(HEADER, { ...HEADER, step: 7, hop: 0 }, 1),
    'rank 3 sent step 7, rank 1 expected 70000',
  )
  assert.equal(
    findMismatch(HEADER, { ...HEADER, wireType: 'fp32', bytes: 12 }, 1),
    'rank 3 sent wireType fp32, rank 1 expected fp16 in step 70000, bucket 5',
  )
})

function openReader(onResume = () => {}) {
  const codec = openCodec(READER_SLOTS * 256 * 1024 + 64)
  return { codec, reader: new FrameReader(codec, 3, onResume) }
}

const frame = (segment: number) => {
  const payload = Uint8Array.from({ length: 100 }, (_, index) => (index * 7 + segment) % 256)
  return Buffer.concat([formatHeader({ ...HEADER, segment, bytes: 100 }, payload), payload])
}

test('frames arrive whole and in order, however TCP cuts them', async () => {
  const stream = Buffer.concat(Array.from({ length: 10 }, (_, segment) => frame(segment)))
  for (const cut of [1, 7, HEADER_BYTES, 148, 333, stream.length]) {
    let at = 0
    let isPaused = false
    const { codec, reader } = openReader(() => {
      isPaused = false
    })
    const feed = () => {
      while (at < stream.length && !isPaused) {
        isPaused = !reader.push(stream.subarray(at, at + cut))
        at += cut
      }
    }
    for (let segment = 0; segment < 10; segment++) {
      const next = reader.next()
      feed()
      const { header, address } = await next
      assert.equal(header.segment, segment, `cut at ${cut}`)
      assert.equal(new Uint8Array(codec.memory)[address + 99], (99 * 7 + segment) % 256)
    }
  }
})

test('a reader holds a few segments and then asks for a pause', () => {
  const { reader } = openReader()
  const answers = Array.from({ length: READER_SLOTS }, (_, segment) => reader.push(frame(segment)))
  assert.deepEqual(answers, [...Array(READER_SLOTS - 1).fill(true), false])
})

test('a damaged segment fails the reader and names the rank', async () => {
  const { reader } = openReader()
  const bytes = frame(0)
  bytes[HEADER_BYTES + 50]! ^= 1
  reader.push(bytes)
  await assert.rejects(reader.next(), { code: 'EXCHANGE_MISMATCH', message: /from rank 3 was damaged/ })
})
