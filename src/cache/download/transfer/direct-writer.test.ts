import assert from 'node:assert/strict'
import fs, {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDirectory } from '../../../testing/temporary-directory.js'
import { FileSink, preallocate } from './file-sink.js'
import { KeptFolders } from './kept-folders.js'

type Place = 'elsewhere' | 'in its room' | 'beside its room'

const KIB = 1024
const MIB = 1024 * KIB
const BODY = Buffer.from(Array.from({ length: 3 * MIB + 777 }, (_, index) => (index * 31) >> 3))

const skip = !opensDirect() && 'the file system of the temporary folder lacks O_DIRECT'

/** A sink for the bytes of a new file of the body's size from `offset` on. */
async function openSink(context: TestContext, offset: number) {
  const path = join(await temporaryDirectory(context), 'file')
  const folders = new KeptFolders()
  context.after(() => folders.close())
  preallocate(path, BODY.length)
  const seen: Buffer[] = []
  const beforeWrite = (bytes: Uint8Array) => seen.push(Buffer.from(bytes))
  const sink = new FileSink(path, {
    offset,
    length: BODY.length,
    isWhole: false,
    folders,
    isDirect: true,
    beforeWrite,
  })
  return { path, sink, seen }
}

/** Offers the bytes of the body in chunks that lie elsewhere than in the sink's room, there, or some bytes beside. */
function pour(sink: FileSink, range: readonly [number, number], chunkBytes: number, place: Place): void {
  for (let at = range[0]; at < range[1]; ) {
    const bytes = BODY.subarray(at, Math.min(range[1], at + chunkBytes))
    const room = place === 'elsewhere' ? undefined : sink.room?.subarray(place === 'in its room' ? 0 : 3)
    const chunk = room?.subarray(0, bytes.length) ?? Buffer.from(bytes)
    at += bytes.copy(chunk)
    if (chunk.length > 0) sink.write(chunk)
    else sink.write(Buffer.from([BODY[at++]!]))
  }
}

for (const { name, range, chunkBytes } of [
  { name: 'a file', range: [0, BODY.length], chunkBytes: 300_001 },
  { name: 'a part in small chunks', range: [MIB, 2 * MIB], chunkBytes: 16 * KIB - 22 },
  { name: 'a range that begins and ends within pages', range: [5000, 2 * MIB + 5000], chunkBytes: 2 * MIB },
  { name: 'a range within a page', range: [4100, 4200], chunkBytes: 7 },
  { name: 'a range over the end of a page', range: [4000, 4200], chunkBytes: 150 },
] as const)
  for (const place of ['elsewhere', 'in its room', 'beside its room'] as const)
    test(`${name} that was read ${place} is written and leaves the rest`, async (context) => {
      const { path, sink, seen } = await openSink(context, range[0])
      pour(sink, range, chunkBytes, place)
      sink.finish()
      assert.ok(Buffer.concat(seen).equals(BODY.subarray(...range)))
      const expected = Buffer.alloc(BODY.length)
      BODY.copy(expected, range[0], ...range)
      assert.ok(readFileSync(path).equals(expected))
      assert.deepEqual(flagsOf(path), [])
    })

test('whole pages go past the page cache, and no others', { skip }, async (context) => {
  const { sink } = await openSink(context, 5000)
  const written: [at: number, length: number][] = []
  onDirectWrite(context, (at, length) => void written.push([at, length]))
  pour(sink, [5000, BODY.length], 256 * KIB, 'in its room')
  sink.finish()
  assert.deepEqual(written, [
    [8 * KIB, MIB - 8 * KIB],
    [MIB, MIB],
    [2 * MIB, MIB],
  ])
})

test('what came of a file is there when it is left, and a later sink goes on', async (context) => {
  const { path, sink, seen } = await openSink(context, 0)
  pour(sink, [0, 300_000], 100_000, 'elsewhere')
  sink.leave()
  assert.ok(readFileSync(path).subarray(0, 300_000).equals(BODY.subarray(0, 300_000)))
  const folders = new KeptFolders()
  context.after(() => folders.close())
  const beforeWrite = (bytes: Uint8Array) => seen.push(Buffer.from(bytes))
  const next = new FileSink(path, {
    offset: 300_000,
    length: BODY.length,
    isWhole: false,
    folders,
    isDirect: true,
    beforeWrite,
  })
  pour(next, [300_000, BODY.length], 100_000, 'in its room')
  next.finish()
  assert.ok(readFileSync(path).equals(BODY))
  assert.ok(Buffer.concat(seen).equals(BODY))
})

test('a file system that opens files with O_DIRECT and then refuses the bytes gets them as usual', {
  skip,
}, async (context) => {
  const { path, sink, seen } = await openSink(context, 5000)
  let refused = 0
  onDirectWrite(context, () => {
    refused += 1
    throw Object.assign(new Error('refused'), { code: 'EINVAL' })
  })
  pour(sink, [5000, BODY.length], 100_000, 'in its room')
  sink.finish()
  assert.equal(refused, 1, 'it is asked once')
  assert.ok(readFileSync(path).subarray(5000).equals(BODY.subarray(5000)))
  assert.ok(Buffer.concat(seen).equals(BODY.subarray(5000)))
  assert.deepEqual(flagsOf(path), [])
})

/** Whether files of the temporary folder can be opened with O_DIRECT. */
function opensDirect(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-direct-'))
  try {
    const { O_CREAT, O_DIRECT, O_WRONLY } = constants
    closeSync(openSync(join(folder, 'file'), O_CREAT | O_DIRECT | O_WRONLY))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
    return false
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Calls `act` before each write past the page cache, until the test ends. */
function onDirectWrite(context: TestContext, act: (at: number, length: number) => void): void {
  const { writeSync } = fs
  const watched = (descriptor: number, bytes: Uint8Array, offset: number, length: number, at: number) => {
    if (flagsOfDescriptor(descriptor) & constants.O_DIRECT) act(at, length)
    return writeSync(descriptor, bytes, offset, length, at)
  }
  context.mock.method(fs, 'writeSync', watched)
  syncBuiltinESMExports()
  context.after(() => {
    context.mock.restoreAll()
    syncBuiltinESMExports()
  })
}

/** Flags of the descriptors of this process that are open on a file. */
function flagsOf(path: string): readonly number[] {
  const numbers = readdirSync('/proc/self/fd').map(Number)
  return numbers.filter((number) => isOpenOn(number, path)).map(flagsOfDescriptor)
}

function isOpenOn(descriptor: number, path: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`) === path
  } catch {
    return false // the one that listed the folder
  }
}

function flagsOfDescriptor(descriptor: number): number {
  const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')
  return Number.parseInt(/^flags:\s*(\d+)$/m.exec(info)![1]!, 8)
}
