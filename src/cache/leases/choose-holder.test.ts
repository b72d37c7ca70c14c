import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXAMPLE_PROCESS } from '../../testing/example-copies.js'
import { type Caller, chooseHolder } from './choose-holder.js'

const NOW_MS = 1000
const plain: Caller = {
  task: undefined,
  ttlMs: 50,
  slurmJobId: undefined,
  podUid: undefined,
  user: 'ada',
  parties: ['user:ada', 'account:nlp'],
  findProcess: () => EXAMPLE_PROCESS,
}

for (const { name, caller, expected } of [
  {
    name: 'takes the calling process, for as long as it lives',
    caller: plain,
    expected: { task: 'ada@gpu-1:7', holder: EXAMPLE_PROCESS, expiresAtMs: null },
  },
  {
    name: 'prefers the pod, until it stops renewing',
    caller: { ...plain, podUid: 'u-1' },
    expected: { task: 'pod:u-1', holder: { kind: 'pod', uid: 'u-1' }, expiresAtMs: 1050 },
  },
  {
    name: 'prefers the Slurm job to the pod, until Slurm forgets it',
    caller: { ...plain, podUid: 'u-1', slurmJobId: '12' },
    expected: { task: 'slurm:12', holder: { kind: 'slurm', jobId: '12' }, expiresAtMs: null },
  },
  {
    name: 'prefers a named task to everything, until its time is up',
    caller: { ...plain, slurmJobId: '12', task: 'nightly' },
    expected: { task: 'nightly', holder: { kind: 'ttl' }, expiresAtMs: 1050 },
  },
  {
    name: 'falls back to time where the caller is gone already',
    caller: { ...plain, findProcess: () => undefined },
    expected: { task: 'ada@unknown', holder: { kind: 'ttl' }, expiresAtMs: 1050 },
  },
] as const) {
  test(`chooseHolder ${name}`, () =>
    assert.deepEqual(chooseHolder(caller, NOW_MS), { ...expected, parties: plain.parties }))
}
