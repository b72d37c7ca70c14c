import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Histogram } from './histogram.js'
import { createMetrics } from './metrics.js'

test('a histogram counts each value in every class that holds it, and sums up', () => {
  const histogram = new Histogram('waits')
  for (const seconds of [0, 0, 3, 60, 99_999]) histogram.observe({ dataset: 'd' }, seconds)
  const rows = histogram.rows().map(({ name, labels, value }) => [name, labels?.le, value])
  assert.deepEqual(rows, [
    ['waits_bucket', '0', 2],
    ['waits_bucket', '1', 2],
    ['waits_bucket', '5', 3],
    ['waits_bucket', '15', 3],
    ['waits_bucket', '60', 4],
    ['waits_bucket', '300', 4],
    ['waits_bucket', '900', 4],
    ['waits_bucket', '3600', 4],
    ['waits_bucket', '14400', 4],
    ['waits_bucket', '+Inf', 5],
    ['waits_sum', undefined, 100_062],
    ['waits_count', undefined, 5],
  ])
})

test('of ten thousand jobs the hundred that were observed last are told of', () => {
  const histogram = new Histogram('waits')
  for (let job = 0; job < 10_000; job++) {
    histogram.observe({ task: `job-${job}` }, 1)
    histogram.observe({ task: 'steady' }, 1)
  }
  const tasks = new Set(histogram.rows().map(({ labels }) => labels.task))
  assert.equal(tasks.size, 100)
  assert.ok(tasks.has('steady') && tasks.has('job-9999') && !tasks.has('job-9000'))
})

test('an agent writes a histogram with its type, and quotes what a job is called', () => {
  const metrics = createMetrics()
  metrics.observe('dsc_job_wait_seconds', { task: 'a"b' }, 2)
  const text = metrics.format()
  assert.match(text, /^# TYPE dsc_job_wait_seconds histogram$/m)
  assert.match(text, /^dsc_job_wait_seconds_bucket\{task="a\\"b",le="5"\} 1$/m)
  assert.match(text, /^dsc_job_wait_seconds_count\{task="a\\"b"\} 1$/m)
})
