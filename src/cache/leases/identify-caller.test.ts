import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identifyProcess } from '../../platform/processes.js'
import { identifyCaller } from './identify-caller.js'

test('identifyCaller reads the Slurm job and the pod from the environment', () => {
  const uid = '01234567-89ab-cdef-0123-456789abcdef'
  const caller = identifyCaller({
    environment: { SLURM_JOB_ID: '12', POD_UID: uid, USER: 'ada' },
    isOwnProcess: true,
  })
  assert.deepEqual([caller.slurmJobId, caller.podUid, caller.user], ['12', uid, 'ada'])
  assert.deepEqual(caller.findProcess(), identifyProcess(process.pid))
})
