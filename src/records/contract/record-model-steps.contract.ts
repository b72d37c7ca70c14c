import assert from 'node:assert/strict'
import type { CopyLock, CopyUse } from '../../model/copy.js'
import type { LeaseRequest } from '../../model/lease.js'
import { planAdmission } from '../../policy/plan-admission.js'
import { planEviction } from '../../policy/plan-eviction.js'
import { DISK, exampleCopy, exampleDataset, NOW_MS } from '../../testing/example-copies.js'
import { NaiveRecord } from '../../testing/naive-record.js'
import { holderKey } from '../../testing/naive-rows.js'
import type { Step, StepLease } from './record-model-steps-arbitrary.contract.js'
import type { RecordStore } from './record-store.js'

/** A stage lease that some step received; it may be long lost. */
interface Turn {
  readonly copyId: string
  readonly stageLeaseId: string
  readonly leaseId: string
}

/** The naive record and the state that the history must remember. */
export interface ModelWorld {
  readonly model: NaiveRecord
  readonly turns: Turn[]
  nowMs: number
  adopted: number
}

export function newWorld(): ModelWorld {
  return { model: new NaiveRecord(), turns: [], nowMs: NOW_MS, adopted: 0 }
}

/** Applies the step to both records and compares the answers. Returns the outcome in two words. */
export async function applyStep(record: RecordStore, world: ModelWorld, step: Step): Promise<string> {
  const { model, nowMs } = world
  switch (step.kind) {
    case 'join':
      return joinBoth(record, world, step)
    case 'lease-ready': {
      const request = { dataset: step.dataset, node: step.node, lease: toRequest(step.lease, nowMs) }
      const use = await record.leaseReady(request, nowMs)
      const expected = model.leaseReady(request, nowMs, use?.leaseId ?? 'none')
      assert.equal(use?.leaseId, expected)
      return `lease-ready ${use !== undefined}`
    }
    case 'lease-copy': {
      const copyId = choose(model.copies, step.pick)?.copyId ?? 'none'
      const lease = toRequest(step.lease, nowMs)
      const leaseId = await record.leaseCopy({ copyId, purpose: step.purpose, lease }, nowMs)
      assert.equal(leaseId, model.leaseCopy(copyId, step.purpose, lease, nowMs, leaseId ?? 'none'))
      return `lease-copy ${leaseId !== undefined}`
    }
    case 'admit':
      return admitBoth(record, world, step)
    case 'mark-ready': {
      const turn = choose(world.turns, step.pick)
      if (!turn) return 'ready nothing'
      const published = {
        ...turn,
        directory: `/copies/${step.version}`,
        path: `/copies/${step.version}/files`,
        chargedBytes: step.bytes,
        chargedInodes: 5,
        reason: 'staged',
        detail: {},
      }
      const isReady = await record.markReady(published, nowMs)
      assert.equal(isReady, model.markReady(published, nowMs))
      return `ready ${isReady}`
    }
    case 'charge': {
      const copyId = choose(model.copies, step.pick)?.copyId ?? 'none'
      const request = { copyId, chargedBytes: step.bytes, chargedInodes: 7, task: 'task-1' }
      const space = { datasets: 0, bytes: step.bytes, inodes: 0 }
      const decide = (copies: readonly CopyUse[]) =>
        planAdmission({
          policy: { maxPercent: 50 },
          disk: DISK,
          copies,
          request: space,
          requestCopyId: copyId,
        })
      const { outcome } = await record.chargeCopy(request, decide, nowMs)
      assert.equal(outcome, model.charge(request, decide, nowMs))
      return `charge ${outcome}`
    }
    case 'progress': {
      const turn = choose(world.turns, step.pick)
      if (!turn) return 'progress nothing'
      const progress = { ...turn, writtenBytes: step.bytes, expiresAtMs: expiry(step.ttlMs, nowMs) }
      assert.equal(await record.reportProgress(progress, nowMs), model.progress(progress, nowMs))
      return 'progress'
    }
    case 'end': {
      const turn = choose(world.turns, step.pick)
      if (!turn) return 'end nothing'
      const failure = {
        id: 'c0ffee00c0ff',
        code: 'SOURCE_NOT_FOUND',
        message: 'no bucket',
        hint: undefined,
      } as const
      const ended = {
        ...turn,
        useLeaseId: turn.leaseId,
        isForgotten: step.isForgotten,
        ...(step.isFailure ? { failure } : {}),
      }
      await record.endStaging(ended, nowMs)
      model.endStaging(ended)
      return 'end'
    }
    case 'evict': {
      const decide = (copies: readonly CopyUse[]) =>
        planEviction({
          policy: { maxDatasets: step.maxDatasets },
          disk: DISK,
          copies: byId(copies),
          request: { datasets: 0, bytes: 0, inodes: 0 },
          accept: step.isPart ? 'part' : 'all',
        })
      const held = new Set(
        model
          .uses({}, nowMs)
          .filter(({ referenceCount, lock }) => referenceCount > 0 || lock !== null)
          .map(({ copyId }) => copyId),
      )
      const plan = await record.beginEviction({ node: step.node, task: null }, decide, nowMs)
      const victims = plan.victims.map(({ copy }) => copy.copyId)
      assert.deepEqual(
        victims,
        model.beginEviction(step.node, decide, nowMs).map(({ copy }) => copy.copyId),
      )
      assert.ok(!victims.some((copyId) => held.has(copyId)), 'evicts what is leased or locked')
      return `evict ${victims.length > 0 ? 'some' : 'none'}`
    }
    case 'finish': {
      const copyId = choose(model.copies, step.pick)?.copyId ?? 'none'
      const isGone = await record.finishEviction(copyId, nowMs)
      assert.equal(isGone, model.finishEviction(copyId))
      return `finish ${isGone}`
    }
    case 'forget': {
      const copyId = choose(model.copies, step.pick)?.copyId ?? 'none'
      const forgotten = await record.forgetCopies([copyId], 'gone from disk', nowMs)
      assert.equal(forgotten, model.forget([copyId]))
      return `forget ${forgotten > 0 ? 'some' : 'none'}`
    }
    case 'lock':
    case 'unlock': {
      const copyId = choose(model.copies, step.pick)?.copyId ?? 'none'
      const lock: CopyLock | null = step.kind === 'lock' ? { by: 'ops', reason: 'keep', atMs: nowMs } : null
      const changed = await record.setLock({ copyId }, lock, nowMs)
      assert.equal(changed.length, model.setLock({ copyId }, lock))
      return `${step.kind} ${changed.length > 0 ? 'some' : 'none'}`
    }
    case 'release': {
      const lease = choose(model.leases, step.pick)
      const copy = model.copies.find(({ copyId }) => copyId === lease?.copyId)
      if (!lease || !copy) return 'release nothing'
      const { task, leaseId } = lease
      const { dataset, node } = copy
      const filter = { task: { task }, dataset: { task, dataset }, node: { node }, lease: { leaseId } }[
        step.by
      ]
      const released = await record.releaseUses(filter, nowMs)
      assert.equal(released, model.release(filter))
      return `release ${released > 0 ? 'some' : 'none'}`
    }
    case 'renew': {
      const leaseId = choose(model.leases, step.pick)?.leaseId ?? 'none'
      const expiresAtMs = expiry(step.ttlMs, nowMs)
      assert.equal(
        await record.renewLease(leaseId, expiresAtMs, nowMs),
        model.renew(leaseId, expiresAtMs, nowMs),
      )
      return 'renew'
    }
    case 'hand-over': {
      const leaseId = choose(model.leases, step.pick)?.leaseId ?? 'none'
      const isDone = await record.handOverLease(leaseId, step.holder, nowMs)
      assert.equal(isDone, model.handOver(leaseId, step.holder, nowMs))
      return `hand over ${isDone}`
    }
    case 'expire': {
      const leaseIds = new Set(step.picks.map((pick) => choose(model.leases, pick)?.leaseId ?? 'none'))
      const dead = [...leaseIds].map((leaseId) => ({ leaseId, reason: 'its process has ended' }))
      const ended = await record.expireLeases(dead, nowMs)
      assert.equal(ended.length, model.expire(dead, nowMs))
      return `expire ${ended.length > 0 ? 'some' : 'none'}`
    }
    case 'adopt':
    case 'return': {
      world.adopted += 1
      const {
        referenceCount: _,
        isBeingStaged: __,
        ...copy
      } = exampleCopy(step.dataset, {
        copyId: `adopted-${world.adopted}`,
        node: step.node,
        version: step.version,
        readyAtMs: nowMs,
        createdAtMs: nowMs,
        lastUsedAtMs: nowMs,
        ...(step.kind === 'return' || step.hasSource ? {} : { source: null }),
      })
      if (step.kind === 'return') {
        const decide = (copies: readonly CopyUse[]) =>
          planAdmission({
            policy: { maxDatasets: step.maxDatasets },
            disk: DISK,
            copies: byId(copies),
            request: { datasets: 1, bytes: copy.chargedBytes, inodes: 0 },
            requestCopyId: '',
          })
        const { outcome } = await record.returnCopy({ copy, reason: 'undone', undoes: 1 }, decide, nowMs)
        assert.equal(outcome, model.returnCopy(copy, decide, nowMs))
        return `return ${outcome}`
      }
      const isAdded = await record.addAdopted(copy, nowMs)
      assert.equal(isAdded, model.addAdopted(copy))
      return `adopt ${isAdded}`
    }
  }
}

async function joinBoth(
  record: RecordStore,
  world: ModelWorld,
  step: Extract<Step, { kind: 'join' | 'lease-ready' }>,
) {
  const { model, nowMs } = world
  const lease = toRequest(step.lease, nowMs)
  const request = {
    dataset: step.dataset,
    node: step.node,
    lease,
    source: exampleDataset(step.dataset),
    stager: { ...lease, expiresAtMs: nowMs + 60_000 },
    origin: 's3' as const,
    directoryOf: (copyId: string) => `/staging/${copyId}`,
    isRefresh: step.isRefresh,
  }
  const joined = await record.joinOrReserve(request, nowMs)
  const stageLeaseId = joined.outcome === 'stage' ? joined.stageLeaseId : 'none'
  const made = { copyId: joined.copy.copyId, leaseId: joined.leaseId, stageLeaseId }
  assert.equal(joined.outcome, model.join(request, nowMs, made))
  if (joined.outcome === 'stage') world.turns.unshift(made)
  return `join ${joined.outcome}`
}

async function admitBoth(
  record: RecordStore,
  { model, nowMs, turns }: ModelWorld,
  step: Extract<Step, { kind: 'admit' | 'mark-ready' }>,
) {
  const turn = choose(turns, step.pick)
  if (!turn) return 'admit nothing'
  const request = {
    ...turn,
    version: step.version,
    files: 3,
    contentBytes: step.bytes,
    chargedBytes: step.bytes,
    chargedInodes: 5,
  }
  const decide = (copies: readonly CopyUse[]) =>
    planAdmission({
      policy: { maxPercent: 60, maxDatasets: 2 },
      disk: DISK,
      copies: byId(copies),
      request: { datasets: 1, bytes: step.bytes, inodes: 5 },
      requestCopyId: turn.copyId,
    })
  const admission = await record.admit(request, decide, nowMs)
  const made = new Map((await record.listLeases({})).map((lease) => [holderKey(lease), lease.leaseId]))
  if (admission.outcome === 'same-version') {
    const leases = await record.listLeases({ copyId: admission.copy.copyId })
    for (const lease of leases) made.set(holderKey(lease), lease.leaseId)
  }
  assert.equal(admission.outcome, model.admit(request, decide, nowMs, made))
  return `admit ${admission.outcome}`
}

/** Prefers the newest turns and the oldest leases; undefined if there is nothing to choose from. */
function choose<T>(rows: readonly T[], pick: number): T | undefined {
  return rows[pick % Math.max(1, rows.length)]
}

/** Both records return the same copies, perhaps in another order. */
function byId(copies: readonly CopyUse[]): readonly CopyUse[] {
  return copies.toSorted((a, b) => (a.copyId < b.copyId ? -1 : 1))
}

function expiry(ttlMs: number | null, nowMs: number): number | null {
  return ttlMs === null ? null : nowMs + ttlMs
}

function toRequest({ ttlMs, ...lease }: StepLease, nowMs: number): LeaseRequest {
  return { ...lease, expiresAtMs: expiry(ttlMs, nowMs) }
}
