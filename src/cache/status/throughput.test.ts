import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOW_MS } from '../../testing/example-copies.js'
import { exampleStatus } from '../../testing/example-status.js'
import { NO_THROUGHPUT, noteThroughput, THROUGHPUT_SAMPLES } from './throughput.js'

const MIB = 1024 ** 2
const at = (seconds: number) =>
  exampleStatus(0, { nowMs: NOW_MS + seconds * 1000, writtenBytes: seconds * MIB })

test('a node that stages has a sample every two seconds, however often it is read', () => {
  let throughput = NO_THROUGHPUT
  for (let seconds = 0; seconds <= 10; seconds += 0.5) throughput = noteThroughput(throughput, at(seconds))
  assert.deepEqual(throughput.total, [0, MIB, MIB, MIB, MIB, MIB])
  assert.deepEqual([...throughput.byNode], [['gpu-01', throughput.total]])
})

test('a node that stages nothing any more is kept while its rates are in sight, and then forgotten', () => {
  let throughput = noteThroughput(noteThroughput(NO_THROUGHPUT, at(0)), at(2))
  const idle = (seconds: number) => ({ takenAtMs: NOW_MS + seconds * 1000, transfers: [] })
  throughput = noteThroughput(throughput, idle(4))
  assert.deepEqual(throughput.byNode.get('gpu-01'), [0, MIB, 0])
  for (let seconds = 6; seconds <= 4 + 2 * THROUGHPUT_SAMPLES; seconds += 2)
    throughput = noteThroughput(throughput, idle(seconds))
  assert.equal(throughput.byNode.size, 0)
  assert.equal(throughput.total.length, THROUGHPUT_SAMPLES)
})

test('a time in which nothing was read is filled, so that samples stay two seconds apart', () => {
  const throughput = noteThroughput(noteThroughput(NO_THROUGHPUT, at(0)), at(10))
  assert.deepEqual(throughput.total, [0, 0, 0, 0, 0, MIB])
})
