import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCopy } from '../../testing/example-copies.js'
import { exampleStatus } from '../../testing/example-status.js'
import { describeCopy, describeStatus } from './describe-status.js'
import { statusAnswer } from './status-answer.js'

test('the JSON of a status has the fields that scripts rely on', () => {
  const status = describeStatus(exampleStatus(1))
  assert.deepEqual(Object.keys(status), [
    'dsc',
    'takenAt',
    'record',
    'nodes',
    'copies',
    'layouts',
    'leases',
    'transfers',
    'waits',
    'holdings',
    'events',
  ])
  const { dataset, version, node, state, diskBytes, lastTask, isLocked, referenceCount, lastUsedAt } = [
    ...status.copies,
  ][0]!
  assert.deepEqual(
    { dataset, version, node, state, diskBytes, lastTask, isLocked, referenceCount, lastUsedAt },
    {
      dataset: 'dataset-0001',
      version: 'a1b2c3d4e5'.padEnd(64, '7'),
      node: 'gpu-01',
      state: 'ready',
      diskBytes: 1024 ** 3,
      lastTask: 'job-4000',
      isLocked: false,
      referenceCount: 1,
      lastUsedAt: '2026-01-02T03:04:05.000Z',
    },
  )
})

test('a status is after JSON what its schema says: nothing in it is infinite', () => {
  const { copies, ...rest } = describeStatus(exampleStatus(5))
  const status = statusAnswer.parse(JSON.parse(JSON.stringify({ ...rest, copies: [...copies] })))
  assert.ok(status.copies.length > 0)
})

test('secrets in a source never reach the JSON', () => {
  const copy = exampleCopy('a')
  const source = { ...copy.source!, source: 's3://key:secret@bucket/a/?X-Amz-Signature=abc' }
  assert.doesNotMatch(JSON.stringify(describeCopy({ ...copy, source })), /secret|Signature/)
})
