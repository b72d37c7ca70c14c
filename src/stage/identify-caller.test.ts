import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identifyProcess } from '../platform/processes.js'
import { findCallerPid, identifyCaller } from './identify-caller.js'

/** A family of processes, each the child of the one before it; pids count from 100. */
function family(...commandLines: readonly string[]) {
  return (pid: number) => {
    const commandLine = commandLines[pid - 100]
    if (commandLine === undefined) return undefined
    const words = commandLine.replaceAll(' ', '\0')
    return { pid, parentPid: pid === 100 ? 1 : pid - 1, startTicks: '1', commandLine: words, isZombie: false }
  }
}

for (const { name, processes, from, expected } of [
  { name: 'is the script that called', processes: ['sshd', 'bash train.sh'], from: 101, expected: 101 },
  {
    name: 'is the shell, not its subshell, as in P=$(cd x; dsc prepare y)',
    processes: ['tmux', 'bash -i', 'bash -i'],
    from: 102,
    expected: 101,
  },
  {
    name: 'is whoever started npx, not npm and its shell',
    processes: ['bash -i', 'npm exec dsc prepare x', 'sh -c dsc'],
    from: 102,
    expected: 100,
  },
  {
    name: 'is whoever started npm through node',
    processes: ['bash -i', 'node /usr/bin/npm run stage', 'sh -c dsc'],
    from: 102,
    expected: 100,
  },
  {
    name: 'is a shell that a program asked to run dsc',
    processes: ['cron', 'sh -c dsc'],
    from: 101,
    expected: 101,
  },
]) {
  test(`the caller ${name}`, () => assert.equal(findCallerPid(from, family(...processes)), expected))
}

test('identifyCaller reads the Slurm job and the pod from the environment', () => {
  const uid = '01234567-89ab-cdef-0123-456789abcdef'
  const caller = identifyCaller({
    environment: { SLURM_JOB_ID: '12', POD_UID: uid, USER: 'ada' },
    isOwnProcess: true,
  })
  assert.deepEqual([caller.slurmJobId, caller.podUid, caller.user], ['12', uid, 'ada'])
  assert.deepEqual(caller.process, identifyProcess(process.pid))
})
