import assert from 'node:assert/strict'
import { test } from 'node:test'
import { packFailure, unpackFailure } from './failure-wire.js'

test('an error keeps its message, stack and code on its way between threads', () => {
  const sent = Object.assign(new Error('no space'), { code: 'ENOSPC' })
  const { message, stack, ...own } = unpackFailure(packFailure(sent))
  assert.deepEqual({ message, stack, ...own }, { message: 'no space', stack: sent.stack, code: 'ENOSPC' })
})

for (const thrown of ['a word', new Error('a word')])
  test(`${thrown instanceof Error ? 'an error' : 'a text'} without a code has a stack and no code afterwards`, () => {
    const error = unpackFailure(packFailure(thrown))
    assert.equal(error.message, 'a word')
    assert.match(error.stack ?? '', /^Error: a word\n +at /)
    assert.equal('code' in error, false)
  })
