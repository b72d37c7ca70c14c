import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCopy } from '../../testing/example-copies.js'
import { exampleStatus } from '../../testing/example-status.js'
import { describeCopy, describeStatus } from './status-json.js'

test('the JSON of a status has the fields that scripts rely on', () => {
  const status = describeStatus(exampleStatus(1))
  assert.deepEqual(Object.keys(status), [
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
  const { dataset, version, node, state, bytes, lastTask, locked, referenceCount, lastUsedAt } = [
    ...status.copies,
  ][0]!
  assert.deepEqual(
    { dataset, version, node, state, bytes, lastTask, locked, referenceCount, lastUsedAt },
    {
      dataset: 'dataset-0001',
      version: 'a1b2c3d4e5'.padEnd(64, '7'),
      node: 'gpu-01',
      state: 'ready',
      bytes: 1024 ** 3,
      lastTask: 'job-4000',
      locked: false,
      referenceCount: 1,
      lastUsedAt: '2026-01-02T03:04:05.000Z',
    },
  )
})

test('a status survives JSON: nothing in it is infinite, undefined or a date', () => {
  const { copies, ...rest } = describeStatus(exampleStatus(5))
  const status = { ...rest, copies: [...copies] }
  assert.deepEqual(JSON.parse(JSON.stringify(status)), status)
})

test('secrets in a source never reach the JSON', () => {
  const copy = exampleCopy('a')
  const source = { ...copy.source!, source: 's3://key:secret@bucket/a/?X-Amz-Signature=abc' }
  assert.doesNotMatch(JSON.stringify(describeCopy({ ...copy, source })), /secret|Signature/)
})
