import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLeaseRequest } from './parse-lease-request.js'

const NOW_MS = 1_700_000_000_000
const DAY_MS = 86_400_000
const process = {
  kind: 'process',
  host: 'gpu-07',
  machine: 'm-1',
  pid: 4711,
  startTicks: '123',
  bootId: 'b-1',
  pidNamespace: 'pid:[4026531836]',
}

for (const lease of [
  { task: 'ada@gpu-07:4711', holder: process, expiresAtMs: null },
  { task: 'slurm:12', holder: { kind: 'slurm', jobId: '12' }, expiresAtMs: null },
  { task: 'pod:u-1', holder: { kind: 'pod', uid: 'u-1' }, expiresAtMs: NOW_MS + DAY_MS },
  { task: 'nightly', holder: { kind: 'ttl' }, expiresAtMs: NOW_MS + 30 * DAY_MS },
]) {
  test(`an agent grants a lease to ${lease.holder.kind}`, () => {
    assert.deepEqual(parseLeaseRequest({ ...lease, more: 1 }, NOW_MS), lease)
    assert.deepEqual(
      parseLeaseRequest({ ...lease, holder: { ...lease.holder, more: 1 } }, NOW_MS),
      lease,
      'nothing else gets into the record',
    )
  })
}

const timed = { task: 'nightly', holder: { kind: 'ttl' }, expiresAtMs: NOW_MS + DAY_MS }
for (const { name, lease, says } of [
  { name: 'no lease', lease: undefined, says: /^lease: expected an object/ },
  { name: 'ttl without an end', lease: { ...timed, expiresAtMs: null }, says: /kind ttl needs an end/ },
  { name: 'an end left out', lease: { ...timed, expiresAtMs: undefined }, says: /kind ttl needs an end/ },
  {
    name: 'a pod without an end',
    lease: { ...timed, holder: { kind: 'pod', uid: 'u-1' }, expiresAtMs: null },
    says: /kind pod needs an end/,
  },
  {
    name: 'a year',
    lease: { ...timed, expiresAtMs: NOW_MS + 365 * DAY_MS },
    says: /within 30d, found one in 365d/,
  },
  {
    name: 'a year for a process',
    lease: { ...timed, holder: process, expiresAtMs: NOW_MS + 365 * DAY_MS },
    says: /within 30d/,
  },
  { name: 'an end in words', lease: { ...timed, expiresAtMs: 'never' }, says: /expiresAtMs.*"never"/ },
  { name: 'an endless number', lease: { ...timed, expiresAtMs: 1e300 }, says: /expiresAtMs/ },
  { name: 'no holder', lease: { ...timed, holder: null }, says: /lease\.holder: expected/ },
  {
    name: 'a holder of no kind',
    lease: { ...timed, holder: { kind: 'god' } },
    says: /process, slurm, pod or ttl, found .*"god"/,
  },
  { name: 'a job without a number', lease: { ...timed, holder: { kind: 'slurm' } }, says: /jobId/ },
  { name: 'a job of words', lease: { ...timed, holder: { kind: 'slurm', jobId: '1;2' } }, says: /jobId/ },
  { name: 'pid 0', lease: { ...timed, holder: { ...process, pid: 0 } }, says: /holder\.pid/ },
  { name: 'no machine', lease: { ...timed, holder: { ...process, machine: '' } }, says: /machine/ },
  { name: 'no start', lease: { ...timed, holder: { ...process, startTicks: 'x' } }, says: /startTicks/ },
  { name: 'no task', lease: { ...timed, task: '' }, says: /lease\.task/ },
  { name: 'a task of two lines', lease: { ...timed, task: 'a\nb' }, says: /lease\.task/ },
  { name: 'a task without end', lease: { ...timed, task: 'a'.repeat(257) }, says: /lease\.task/ },
]) {
  test(`an agent refuses a lease with ${name}`, () => {
    assert.throws(
      () => parseLeaseRequest(lease, NOW_MS),
      (error: Error) => error instanceof RangeError && says.test(error.message),
    )
  })
}
