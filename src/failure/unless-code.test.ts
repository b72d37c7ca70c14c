import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DscError } from './dsc-error.js'
import { unlessCode, unlessRejected } from './unless-code.js'

test('gives the result, and undefined for the codes named alone', () => {
  assert.equal(
    unlessCode(['ENOENT'], () => 7),
    7,
  )
  assert.equal(
    unlessCode(['ENOENT', 'ENOTDIR'], () => readFileSync('/no/such/file')),
    undefined,
  )
  assert.throws(() => unlessCode(['ENOENT'], () => mkdirSync('/')), { code: 'EEXIST' })
  assert.throws(
    () =>
      unlessCode(['ENOENT', ''], () => {
        throw new TypeError('it has no code')
      }),
    TypeError,
  )
})

test('does the same for work that is under way, and for the codes of dsc', async () => {
  const gone = () => Promise.reject(new DscError('FEED_GONE', 'no feed answers'))
  assert.equal(await unlessRejected(['FEED_GONE'], Promise.resolve(7)), 7)
  assert.equal(await unlessRejected(['FEED_GONE'], gone()), undefined)
  await assert.rejects(unlessRejected(['ENOENT'], gone()), { code: 'FEED_GONE' })
})
