import assert from 'node:assert/strict'
import type { CopyUse } from '../../model/copy.js'
import type { Lease } from '../../model/lease.js'
import { planAdmission } from '../../policy/plan-admission.js'
import { planToDelete } from '../../policy/plan-eviction.js'
import { DISK, exampleCopy, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { NODE } from '../../testing/example-staging.js'
import { contractTest, type OpenRecord } from './contract-test.contract.js'

/** How a record keeps users' deeds, and takes them back. */
export function recordUndoContract(engine: string, open: OpenRecord): void {
  const contract = contractTest(engine, open)

  contract('returns an evicted copy once, and only where it needs no victim', async (record) => {
    const copy = exampleCopy('flowers')
    const returned = { copy, reason: 'ada took it back', undoes: 7 }
    const decide = (maxDatasets: number) => (copies: readonly CopyUse[]) =>
      planAdmission({
        policy: { maxDatasets },
        disk: DISK,
        copies,
        request: { datasets: 1, bytes: 1, inodes: 1 },
        requestCopyId: '',
      })
    await record.addAdopted(exampleCopy('birds'), NOW_MS)
    await record.returnCopy(returned, decide(1), NOW_MS)
    assert.deepEqual(
      (await record.listCopies({}, NOW_MS)).map(({ dataset, state }) => [dataset, state]),
      [['birds', 'ready']],
    )
    assert.equal((await record.returnCopy(returned, decide(2), NOW_MS)).outcome, 'admit')
    const [event] = await record.listEvents({ kinds: ['undone'], limit: 9 })
    assert.deepEqual([event?.reason, event?.detail.undoes], ['ada took it back', 7])
    const again = { ...returned, copy: { ...copy, copyId: 'another' } }
    assert.equal((await record.returnCopy(again, decide(9), NOW_MS)).outcome, 'present')
  })

  contract('keeps in the history what takes back an eviction, an unlock or a release', async (record) => {
    const lock = { by: 'ops', reason: 'keep', atMs: NOW_MS }
    const copy = exampleCopy('flowers', { lock, lastTask: 'job-1' })
    await record.addAdopted(copy, NOW_MS)
    await record.setLock({ dataset: 'flowers' }, null, NOW_MS, 'ada')
    const lease = exampleLease('job-1', { expiresAtMs: NOW_MS + 1000 })
    await record.leaseReady({ dataset: 'flowers', node: NODE, lease }, NOW_MS)
    await record.releaseUses({ task: 'job-1' }, NOW_MS, 'ada')
    const plan = planToDelete([copy], 'by hand')
    await record.beginEviction({ node: NODE, task: null, by: 'ada' }, () => plan, NOW_MS)
    const events = await record.listEvents({ kinds: ['evicted', 'released', 'unlocked'], limit: 9 })
    assert.deepEqual(
      events.map(({ detail }) => detail.by),
      ['ada', 'ada', 'ada'],
    )
    const [evicted, released, unlocked] = events
    assert.deepEqual(unlocked?.detail.lock, lock)
    const { task, holder, expiresAtMs } = released!.detail.lease as Lease
    assert.deepEqual([task, holder, expiresAtMs], ['job-1', lease.holder, NOW_MS + 1000])
    assert.deepEqual(evicted?.detail.source, copy.source)
    assert.deepEqual([evicted?.detail.origin, evicted?.detail.lastTask], [copy.origin, 'job-1'])
  })
}
