import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatheredReads } from './gathered-reads.js'

/** Reads into `room`, and what was handed on. */
function begin(room: Buffer) {
  const handed: string[] = []
  const reads = new GatheredReads((bytes) => handed.push(Buffer.from(bytes).toString()))
  let place = reads.findRoom(() => room)
  /** As a socket does: reads into the memory that it got last, tells of it, and asks for the next. */
  const read = (text: string, leftBytes: number) => {
    place!.write(text)
    reads.add(text.length, leftBytes)
    place = reads.findRoom(() => undefined)
  }
  return { reads, handed, read }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('what comes in one turn of the event loop is handed on in one piece', async () => {
  const { handed, read } = begin(Buffer.alloc(9))
  read('ab', 9)
  read('cd', 9)
  assert.deepEqual(handed, [])
  await turn()
  assert.deepEqual(handed, ['abcd'])
})

test('the last bytes of an answer are handed on at once, since their memory is given back then', () => {
  const { handed, read } = begin(Buffer.alloc(9))
  read('ab', 5)
  read('cde', 5)
  assert.deepEqual(handed, ['abcde'])
})

test('memory that is full is handed on at once', () => {
  const { handed, read } = begin(Buffer.alloc(4))
  read('ab', 9)
  read('cd', 9)
  assert.deepEqual(handed, ['abcd'])
})

test('a read after the turn lies behind the ones before it', async () => {
  const { handed, read } = begin(Buffer.alloc(9))
  read('ab', 9)
  await turn()
  read('cd', 7)
  await turn()
  assert.deepEqual(handed, ['ab', 'cd'])
})

test('what is dropped is not handed on', async () => {
  const { reads, handed, read } = begin(Buffer.alloc(9))
  read('ab', 9)
  reads.drop()
  await turn()
  assert.deepEqual(handed, [])
})

test('other memory is not gathered', () => {
  const reads = new GatheredReads(() => assert.fail('nothing was gathered'))
  assert.equal(
    reads.findRoom(() => undefined),
    undefined,
  )
  assert.equal(reads.add(2, 9), false)
})
