import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { readBody } from './body.js'
import { formatFrame, formatFrameStart, openFrame, parseFrame, readFrames, type Wire } from './frame.js'
import { formatJsonLine, LineReader, listenForLines, MAX_LINE_BYTES, readJsonLines } from './lines.js'
import { isSecret } from './secret.js'

// Streams with any content, cut into any pieces: one suite for every reader of sockets and pipes.

/** Any text, with line and string terminators somewhere in it. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\n', '\r', '\u0085', '\u2028', '\u2029', '\0', '"', '\\', '\ufeff', '😀'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
})
const message = fc.record({ text, more: fc.jsonValue() })
/** Positions to cut a stream at, as fractions of its length. */
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 })

/** The pieces of `bytes`, each in its own memory; some are empty. */
function cut(bytes: Uint8Array, at: readonly number[]): Buffer[] {
  const places = [0, ...at.map((part) => Math.floor(part * bytes.length)).toSorted((a, b) => a - b)]
  return places.map((from, index) => Buffer.from(bytes.slice(from, places[index + 1] ?? bytes.length)))
}

function readLines(chunks: readonly Buffer[]): readonly unknown[] {
  const reader = new LineReader()
  return chunks.flatMap((chunk) => [...reader.read(chunk)].map((line) => JSON.parse(line) as unknown))
}

/** JSON has no -0. */
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('lines arrive as they were written, however the stream is cut', () => {
  fc.assert(
    fc.property(fc.array(message), cuts, (messages, at) => {
      const written = messages.map(formatJsonLine).join('\n') // empty lines between them are keep-alives
      assert.deepEqual(readLines(cut(Buffer.from(written), at)), asJson(messages))
    }),
  )
})

test('a stream of lines that ends early loses its last line and no other', async () => {
  const property = fc.asyncProperty(
    fc.array(message, { minLength: 1 }),
    cuts,
    fc.nat(),
    async (messages, at, lost) => {
      const lines = messages.map(formatJsonLine)
      const lastBytes = Buffer.byteLength(lines.at(-1)!)
      const whole = Buffer.from(lines.join(''))
      const truncated = whole.subarray(0, whole.length - 1 - (lost % lastBytes))
      const chunks = cut(truncated, at)
      const read: unknown[] = []
      for await (const line of readJsonLines(Readable.from(chunks), (raw) => raw)) read.push(line)
      assert.deepEqual(read, asJson(messages.slice(0, -1)))
    },
  )
  await fc.assert(property)
})

test('a reader of lines hands over what follows a message, however the stream is cut', () => {
  fc.assert(
    fc.property(message, fc.uint8Array(), cuts, (first, rest, at) => {
      const socket = new PassThrough()
      const raw: Buffer[] = []
      listenForLines(socket, {
        parse: (found) => found,
        onMessage: () => 'raw',
        onRaw(bytes) {
          raw.push(bytes)
          socket.on('data', (chunk: Buffer) => raw.push(chunk))
        },
      })
      for (const chunk of cut(Buffer.concat([Buffer.from(formatJsonLine(first)), rest]), at))
        socket.emit('data', chunk)
      assert.deepEqual(Buffer.concat(raw), Buffer.from(rest))
    }),
  )
})

test('any bytes are lines or end the connection, and no line is longer than the limit', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), cuts, (bytes, at) => {
      const socket = new PassThrough()
      const read: unknown[] = []
      listenForLines(socket, {
        parse: (found) => found,
        onMessage: (found) => void read.push(found),
      })
      socket.on('error', () => {})
      for (const chunk of cut(bytes, at)) if (!socket.destroyed) socket.emit('data', chunk)
      const lines = Buffer.from(bytes).toString('latin1').split('\n').slice(0, -1)
      const isSound = (line: string) => {
        try {
          JSON.parse(Buffer.from(line, 'latin1').toString())
          return true
        } catch {
          return line === ''
        }
      }
      const firstBad = lines.findIndex((line) => !isSound(line))
      assert.equal(socket.destroyed, firstBad !== -1)
      const sound = lines.slice(0, firstBad === -1 ? undefined : firstBad).filter((line) => line !== '')
      assert.equal(read.length, sound.length)
    }),
  )
  const longest = Buffer.alloc(MAX_LINE_BYTES, 'x')
  assert.equal([...new LineReader().read(Buffer.concat([longest, Buffer.from('\n')]))].length, 1)
  assert.throws(() => [...new LineReader().read(Buffer.concat([longest, Buffer.from('x\n')]))], /more than/)
  const unended = new LineReader()
  assert.deepEqual([...unended.read(longest)], [])
  assert.throws(() => [...unended.read(Buffer.from('x'))], /more than/)
})

test('a body arrives whole, with its length announced or not, or is refused', async () => {
  const property = fc.asyncProperty(
    fc.uint8Array({ maxLength: 100 }),
    cuts,
    fc.nat(120),
    fc.option(fc.nat(120), { nil: undefined }),
    async (bytes, at, maxBytes, declared) => {
      const headers = declared === undefined ? {} : { 'content-length': String(declared) }
      const request = Object.assign(Readable.from(cut(bytes, at)), { headers })
      const refusal = new Error('refused')
      const read = readBody(request, maxBytes, () => refusal)
      const isSound = (declared ?? bytes.length) <= maxBytes && (declared ?? bytes.length) === bytes.length
      if (isSound) assert.deepEqual(await read, Buffer.from(bytes))
      else await assert.rejects(read, refusal)
    },
  )
  await fc.assert(property)
})

test('a secret is itself, and nothing else is', () => {
  fc.assert(
    fc.property(text, text, (secret, other) => {
      assert.ok(isSecret(secret, secret))
      assert.equal(isSecret(other, secret), Buffer.from(other).equals(Buffer.from(secret)))
    }),
  )
})

const WIRE: Wire = { mark: 'TEST', version: 3 }
const asHead = (raw: unknown) => raw as object
const reading = { wire: WIRE, parse: asHead, refuse: (problem: string) => new Error(problem) }
const frame = fc.record({
  head: fc.dictionary(text, fc.jsonValue()),
  payload: fc.uint8Array({ maxLength: 50 }),
})
const write = ({ head, payload }: { head: object; payload: Uint8Array }) => formatFrame(WIRE, head, payload)

/** The frames of the pieces: collected, or passed on piece by piece. */
function collectFrames(chunks: readonly Buffer[], how: 'whole' | 'in pieces', maxPayloadBytes?: number) {
  const found: { head: object; payload: Buffer }[] = []
  const pieces: Buffer[] = []
  const reader = readFrames({
    ...reading,
    ...(maxPayloadBytes !== undefined && { maxPayloadBytes }),
    onFrame: (head, payload) => void found.push({ head, payload }),
    onBegin: (head) =>
      how === 'whole'
        ? undefined
        : {
            take: (piece) => void pieces.push(Buffer.from(piece)),
            end: () => void found.push({ head, payload: Buffer.concat(pieces.splice(0)) }),
          },
  })
  for (const chunk of chunks) reader.push(chunk)
  return found
}

const plain = (frames: readonly { head: object; payload: Uint8Array }[]) =>
  frames.map(({ head, payload }) => ({ head: asJson(head), payload: [...payload] }))

test('frames arrive as they were written, however the stream is cut', () => {
  fc.assert(
    fc.property(fc.array(frame), cuts, fc.constantFrom('whole', 'in pieces'), (frames, at, how) => {
      const read = collectFrames(cut(Buffer.concat(frames.map(write)), at), how)
      assert.deepEqual(plain(read), plain(frames))
      for (const each of frames) assert.deepEqual(plain([parseFrame(write(each), reading)]), plain([each]))
    }),
  )
})

test('a stream of frames that ends early loses its last frame and no other', async () => {
  const property = fc.asyncProperty(
    fc.array(frame, { minLength: 1 }),
    cuts,
    fc.nat(),
    async (frames, at, lost) => {
      const last = write(frames.at(-1)!)
      const lostBytes = 1 + (lost % last.length)
      const whole = Buffer.concat(frames.map(write))
      const read = collectFrames(cut(whole.subarray(0, whole.length - lostBytes), at), 'whole')
      assert.deepEqual(plain(read), plain(frames.slice(0, -1)))
      const kept = last.subarray(0, last.length - lostBytes)
      assert.throws(() => parseFrame(kept, reading), /^Error: sent/)
      await assert.rejects(async () => {
        const opened = await openFrame(Readable.from(cut(kept, at)), reading)
        for await (const _ of opened.payload);
      }, /ended in the middle/)
    },
  )
  await fc.assert(property)
})

test('the one frame of a stream is opened, however the stream is cut', async () => {
  const property = fc.asyncProperty(frame, cuts, async (written, at) => {
    const { head, payload } = await openFrame(Readable.from(cut(write(written), at)), reading)
    const pieces: Buffer[] = []
    for await (const piece of payload) pieces.push(Buffer.from(piece))
    assert.deepEqual(plain([{ head, payload: Buffer.concat(pieces) }]), plain([written]))
  })
  await fc.assert(property)
})

test('no bit of the start or the head of a frame can change unnoticed', () => {
  fc.assert(
    fc.property(frame, fc.nat(), (written, bit) => {
      const bytes = write(written)
      const at = bit % (8 * (bytes.length - written.payload.length))
      bytes[at >> 3]! ^= 1 << (at & 7)
      let read: readonly unknown[] = []
      try {
        read = collectFrames([bytes], 'whole')
      } catch (error) {
        assert.match((error as Error).message, /^(does not speak|speaks|sent)/)
      }
      assert.deepEqual(read, []) // refused, or waiting for more of a longer head
    }),
  )
})

test('any bytes are refused as a frame, as soon as the mark has come', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), cuts, (bytes, at) => {
      fc.pre(Buffer.from(bytes).toString('latin1', 0, 4) !== WIRE.mark)
      if (bytes.length < 20) assert.deepEqual(collectFrames(cut(bytes, at), 'whole'), [])
      else assert.throws(() => collectFrames(cut(bytes, at), 'whole'), /does not speak TEST/)
    }),
  )
})

test('a payload over the limit is refused before it is collected', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 40), (excess) => {
      const start = formatFrameStart(WIRE, {}, 101 + excess)
      assert.throws(
        () => collectFrames([start], 'whole', 100),
        new RegExp(`a frame of ${101 + excess} bytes`),
      )
    }),
  )
  const whole = formatFrame(WIRE, {}, new Uint8Array(100))
  assert.equal(collectFrames([whole], 'whole', 100).length, 1)
})

test('the bytes of a frame are pinned, and those of its other version are refused by name', () => {
  const bytes = formatFrame(WIRE, { a: 1 }, Uint8Array.of(1, 2, 3))
  assert.equal(
    bytes.toString('hex'),
    '544553540c000000030000000000030058c889f27b2261223a317d2020202020010203',
  )
  bytes.writeUInt16LE(2, 14)
  assert.throws(() => parseFrame(bytes, reading), /speaks TEST 2, this is TEST 3/)
})
