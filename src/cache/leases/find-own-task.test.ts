import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LeaseHolder, PlacedLease } from '../../model/lease.js'
import { identifyProcess } from '../../platform/processes.js'
import { chooseTaskAbove } from './find-own-task.js'

const here = identifyProcess(process.pid)!
const above = identifyProcess(process.ppid)!
const ABOVE = [process.ppid, process.pid] // the nearest first

function lease(task: string, holder: LeaseHolder): PlacedLease {
  return { task, holder } as PlacedLease
}

for (const { name, leases, task } of [
  {
    name: 'the nearest process that holds a lease',
    leases: [
      ['far', here],
      ['near', above],
    ],
    task: 'near',
  },
  {
    name: 'none whose lease no process holds',
    leases: [['slurm:1', { kind: 'slurm', jobId: '1' }]],
    task: undefined,
  },
  {
    name: 'none of a process that had its number before',
    leases: [['old', { ...above, startTicks: '1' }]],
    task: undefined,
  },
  { name: 'none of another machine', leases: [['other', { ...above, machine: 'other' }]], task: undefined },
  { name: 'none that is not above', leases: [['beside', { ...here, pid: 1 }]], task: undefined },
] as const)
  test(`a feed works for the task of ${name}`, () => {
    assert.equal(
      chooseTaskAbove(
        leases.map(([of, holder]) => lease(of, holder)),
        ABOVE,
      ),
      task,
    )
  })
