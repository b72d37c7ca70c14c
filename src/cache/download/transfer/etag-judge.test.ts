import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEtagEvidence, EtagJudge } from './etag-judge.js'

test('etags are judged to be none when the same bytes come four times with another MD5', () => {
  const judge = new EtagJudge()
  for (const md5 of ['1', '2', '2', '2']) assert.equal(judge.isNone('a', md5), false)
  assert.equal(judge.isNone('b', '2'), false, 'another object')
  assert.equal(judge.isNone('a', '2'), true)
  assert.equal(judge.isNone('b', '3'), true, 'no etag of the source is compared any more')
})

test('an etag is taken at its word where another of the source was right', () => {
  const judge = new EtagJudge()
  for (let times = 0; times < 3; times += 1) assert.equal(judge.isNone('a', '1'), false)
  judge.proven()
  for (let times = 0; times < 9; times += 1) assert.equal(judge.isNone('a', '1'), false)
})

test('the threads of a staging judge its etags together', () => {
  const evidence = createEtagEvidence()
  const [judge, other] = [new EtagJudge(evidence), new EtagJudge(evidence)]
  for (let times = 0; times < 3; times += 1) assert.equal(judge.isNone('a', '1'), false)
  other.proven()
  assert.equal(judge.isNone('a', '1'), false)
})
