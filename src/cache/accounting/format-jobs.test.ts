import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatJobs } from './format-jobs.js'
import type { JobTime } from './job-times.js'

const HOUR_MS = 3_600_000
const JOB: JobTime = { task: 'slurm:4711', nodes: 1, gpus: 8, gpuMs: 41 * HOUR_MS, waitedGpuMs: 0, waits: [] }

test('a job is one sentence: its share of waits, and for what', () => {
  const wait = (place: 'queue' | 'feed' | 'transform', culprit: string, points: number) => {
    return { place, culprit, gpuMs: 0.41 * points * HOUR_MS }
  }
  const waits = [
    wait('queue', 'laion', 9),
    wait('feed', 'storage node 1 (gpu-03:7071)', 4),
    wait('transform', 'transform', 3),
    wait('feed', 'disk', 1),
  ]
  assert.equal(
    formatJobs([
      { ...JOB, waits },
      { ...JOB, task: 'b' },
    ]),
    [
      'slurm:4711: 17% of 41 GPU-hours waited: 9 in the queue for staging (laion), 5 in the feed (storage node 1 (gpu-03:7071) slow), 3 in your own transform',
      'b: 0% of 41 GPU-hours waited',
    ].join('\n'),
  )
})

test('a wait that rounds to nothing is left out, and a feed that waited for two names both', () => {
  const waits = [
    { place: 'feed', culprit: 'store', gpuMs: 600 },
    { place: 'feed', culprit: 'memory', gpuMs: 400 },
    { place: 'queue', culprit: 'laion', gpuMs: 40 },
  ] as const
  assert.equal(
    formatJobs([{ ...JOB, gpuMs: 10_000, waits }]),
    'slurm:4711: 10% of 10.0 GPU-seconds waited: 10 in the feed (the store slow, its memory full)',
  )
})

test('GPUs that waited for another rank say for which, and why it was behind', () => {
  const waits = [
    { place: 'transform', culprit: 'transform of rank 3', gpuMs: 3000 },
    { place: 'transform', culprit: 'transform', gpuMs: 1000 },
    { place: 'feed', culprit: 'disk of rank 12', gpuMs: 500 },
  ] as const
  assert.equal(
    formatJobs([{ ...JOB, gpuMs: 10_000, waits }]),
    'slurm:4711: 45% of 10.0 GPU-seconds waited: 40 in your own transform (rank 3 behind), 5 in the feed (rank 12 behind: this disk slow)',
  )
})
