import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DISK, exampleCopy } from '../testing/example-copies.js'
import { planAdmission } from './plan-admission.js'

const request = { datasets: 1, bytes: 100, inodes: 1 }

test('planAdmission admits what fits once its victims are gone', () => {
  const admission = planAdmission({
    policy: { maxDatasets: 1 },
    disk: DISK,
    copies: [exampleCopy('old')],
    request,
    requestCopyId: 'new',
  })
  assert.equal(admission.outcome, 'admit')
  assert.deepEqual(
    admission.plan.victims.map(({ copy }) => copy.dataset),
    ['old'],
  )
})

test('planAdmission waits while an eviction is under way, even if the request would fit beside it', () => {
  const evicting = exampleCopy('old', { state: 'evicting' })
  const admission = planAdmission({
    policy: {},
    disk: DISK,
    copies: [evicting],
    request,
    requestCopyId: 'new',
  })
  assert.deepEqual(admission, { outcome: 'wait', evicting: [evicting] })
})

test('planAdmission refuses with everything that holds the space and only that', () => {
  const leased = exampleCopy('leased', { referenceCount: 2 })
  const locked = exampleCopy('locked', { lock: { by: 'ops', reason: 'keep', atMs: 0 } })
  const admission = planAdmission({
    policy: { maxDatasets: 2 },
    disk: DISK,
    copies: [leased, exampleCopy('idle'), locked, exampleCopy('asked', { state: 'reserved' })],
    request,
    requestCopyId: 'id-asked',
  })
  assert.equal(admission.outcome, 'refuse')
  assert.deepEqual(admission.holders, [leased, locked])
  assert.equal(admission.plan.evictableCopies, 1)
})
