import assert from 'node:assert/strict'
import fs, { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { type VolumeNote, VolumeNotes } from './volume-notes.js'

const NOTE: VolumeNote = {
  version: 1,
  volumeId: 'csi-1',
  target: '/pods/u-1/data',
  pod: { uid: 'u-1', namespace: 'team-a', name: 'reader' },
  named: 's3://bucket/flowers/',
  dataset: 'flowers',
  copyId: 'c-1',
}
const FILE = '751ccdd9861073c3b2cd2ebd9163fa20a6a3ca3f507ca7207bb7be87f187325b.json'
const BYTES =
  '{"version":1,"volumeId":"csi-1","target":"/pods/u-1/data","pod":{"uid":"u-1","namespace":"team-a","name":"reader"},"named":"s3://bucket/flowers/","dataset":"flowers","copyId":"c-1","isOver":true}'

const never = (sentence: string) => assert.fail(sentence)

test('the bytes of a note are pinned: when this fails, raise its version, or a new agent forgets mounted volumes', async (context) => {
  const folder = await temporaryDirectory(context)
  const notes = new VolumeNotes(folder, never)
  notes.save(NOTE)
  notes.end(NOTE)
  assert.deepEqual(readdirSync(folder), [FILE])
  assert.equal(readFileSync(join(folder, FILE), 'utf8'), BYTES)
  const over = { ...NOTE, isOver: true }
  assert.deepEqual([notes.list(), new VolumeNotes(folder, never).list()], [[over], [over]])
  notes.remove(NOTE.target)
  assert.deepEqual([readdirSync(folder), notes.list()], [[], []])
})

test('half a note is deleted and reported, while notes of another version and other files stay', async (context) => {
  const folder = await temporaryDirectory(context)
  const [torn, newer] = ['a', 'b'].map((letter) => `${letter.repeat(64)}.json`)
  writeFileSync(join(folder, torn!), BYTES.slice(0, 40))
  writeFileSync(join(folder, newer!), BYTES.replace('"version":1', '"version":2'))
  writeFileSync(join(folder, FILE), BYTES)
  writeFileSync(join(folder, `${FILE}.new`), '')
  writeFileSync(join(folder, 'README'), '')
  const told: string[] = []
  const notes = new VolumeNotes(folder, (sentence) => told.push(sentence))
  assert.deepEqual(readdirSync(folder).toSorted(), [FILE, 'README', newer].toSorted())
  assert.equal(notes.list().length, 1)
  assert.deepEqual(told, [
    `deleted ${join(folder, torn!)}: expected the note of a volume, found half of one`,
    `ignored ${join(folder, newer!)}: expected a note of version 1, found 2`,
  ])
})

/** Records the calls that bring files to disk. */
function recordCalls(context: TestContext): string[] {
  const calls: string[] = []
  const { fsyncSync, renameSync } = fs
  context.mock.method(fs, 'fsyncSync', (descriptor: number) => {
    calls.push(fs.fstatSync(descriptor).isDirectory() ? 'sync folder' : 'sync file')
    fsyncSync(descriptor)
  })
  context.mock.method(fs, 'renameSync', (from: string, to: string) => {
    calls.push('rename')
    renameSync(from, to)
  })
  syncBuiltinESMExports()
  context.after(() => {
    context.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return calls
}

test('a note survives a power loss as a whole, and a new one by its name', async (context) => {
  const notes = new VolumeNotes(await temporaryDirectory(context), never)
  const calls = recordCalls(context)
  notes.save(NOTE)
  assert.deepEqual(calls.splice(0), ['sync file', 'rename', 'sync folder'])
  notes.end(NOTE) // whichever of the two the name means, both are right
  assert.deepEqual(calls, ['sync file', 'rename'])
})
