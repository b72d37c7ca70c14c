import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EtagJudge } from './etag-judge.js'

test('an etag is judged to be none when the same bytes come twice with another MD5', () => {
  const judge = new EtagJudge()
  assert.equal(judge.isNone('a', '1'), false)
  assert.equal(judge.isNone('b', '1'), false)
  assert.equal(judge.isNone('a', '2'), false, 'other bytes: damaged on the way')
  assert.equal(judge.isNone('a', '2'), true)
})

test('an etag is taken at its word where another of the source was right', () => {
  const judge = new EtagJudge()
  assert.equal(judge.isNone('a', '1'), false)
  judge.proven()
  for (let times = 0; times < 3; times += 1) assert.equal(judge.isNone('a', '1'), false)
})
