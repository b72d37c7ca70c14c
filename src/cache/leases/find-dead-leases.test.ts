import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, LeaseHolder } from '../../model/lease.js'
import { EXAMPLE_PROCESS } from '../../testing/example-copies.js'
import { findDeadLeases } from './find-dead-leases.js'

const NOW_MS = 1_000_000_000
const DAY_MS = 86_400_000
const aJob: LeaseHolder = { kind: 'slurm', jobId: '12' }

function lease(holder: LeaseHolder, changes: Partial<Lease> = {}): Lease {
  return {
    leaseId: 'a',
    copyId: 'c',
    purpose: 'use',
    task: 't',
    holder,
    createdAtMs: 0,
    renewedAtMs: NOW_MS,
    expiresAtMs: null,
    ...changes,
  }
}

for (const { name, of, state = 'alive', slurmJobs, isPodGone, reason } of [
  { name: 'leaves a process that runs', of: lease(EXAMPLE_PROCESS), reason: undefined },
  {
    name: 'finds a process that ended',
    of: lease(EXAMPLE_PROCESS),
    state: 'dead',
    reason: 'process 7 on gpu-1 has ended',
  },
  {
    name: 'leaves a process that cannot be seen',
    of: lease(EXAMPLE_PROCESS),
    state: 'unknown',
    reason: undefined,
  },
  {
    name: 'finds one that cannot be seen and has not renewed for a day',
    of: lease(EXAMPLE_PROCESS, { renewedAtMs: NOW_MS - DAY_MS - 1 }),
    state: 'unknown',
    reason: 'process 7 on gpu-1 cannot be seen and has not renewed for 24 h',
  },
  { name: 'leaves a job while Slurm cannot be asked', of: lease(aJob), reason: undefined },
  { name: 'leaves a job that Slurm lists', of: lease(aJob), slurmJobs: new Set(['12']), reason: undefined },
  {
    name: 'finds a job that Slurm no longer lists',
    of: lease(aJob),
    slurmJobs: new Set(['13']),
    reason: 'Slurm job 12 is not in the queue any more',
  },
  { name: 'leaves what only time ends', of: lease({ kind: 'ttl' }, { expiresAtMs: 1 }), reason: undefined },
  {
    name: 'leaves a pod that nobody looks at',
    of: lease({ kind: 'pod', uid: 'u' }),
    slurmJobs: new Set<string>(),
    reason: undefined,
  },
  {
    name: 'leaves a pod that runs',
    of: lease({ kind: 'pod', uid: 'u' }),
    isPodGone: () => false,
    reason: undefined,
  },
  {
    name: 'finds a pod that has ended',
    of: lease({ kind: 'pod', uid: 'u' }),
    isPodGone: () => true,
    reason: 'pod u has ended',
  },
] as const) {
  test(`findDeadLeases ${name}`, () => {
    const found = findDeadLeases([of], { checkProcess: () => state, slurmJobs, isPodGone, nowMs: NOW_MS })
    assert.deepEqual(found, reason === undefined ? [] : [{ leaseId: 'a', reason }])
  })
}
