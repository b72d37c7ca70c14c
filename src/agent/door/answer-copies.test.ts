import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GivenPasses } from '../../cache/surroundings.js'
import type { Dataset } from '../../model/dataset.js'
import { ADA, EVE, openService, prepareAs, SHOWN } from '../../testing/door-service.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { judgePass, PASS_MS } from '../server/copy-pass.js'

const GUARDED: Dataset = {
  ...{ name: 'guarded', source: 's3://bucket/guarded/', include: [], exclude: [] },
  readers: [`user:uid-${ADA}`],
}

/** A service on a node beside another one, which has a copy that Ada alone may read, and one that is for everybody. */
async function openBesideOther(context: Parameters<typeof openService>[0]) {
  const service = await openService(context, { declared: [GUARDED] })
  const { record } = service.cache
  for (const [dataset, copyId] of [
    ['guarded', 'theirs'],
    ['flowers', 'open'],
  ] as const) {
    const copy = exampleCopy(dataset, { copyId, node: 'node-b' })
    await record.addAdopted(copy, record.nowMs())
  }
  const ask = (uid: number, ...copyIds: string[]) => {
    service.as(uid)
    return service.client.ask<GivenPasses>('passCopies', { copyIds })
  }
  const tokens = [{ text: SHOWN.token, mayOnlyRead: false }]
  const judge = (pass: string | null | undefined, copyId: string) =>
    judgePass(`Bearer ${pass}`, { copyId, tokens, nowMs: record.nowMs() })
  return { ...service, ask, judge }
}

test('a reader gets a pass for a copy of another node, which opens that copy alone, for a while', async (context) => {
  const { ask, judge, cache } = await openBesideOther(context)
  const { passes, lastsMs, ca } = await ask(ADA, 'theirs', 'gone')
  assert.deepEqual([passes.length, passes[1], lastsMs, ca], [2, null, PASS_MS, SHOWN.ca])
  const pass = judge(passes[0], 'theirs')
  assert.equal(pass?.by, `${ADA}@${cache.node}`)
  const leftMs = pass.expiresAtMs - cache.nowMs()
  assert.ok(leftMs > PASS_MS - 10_000 && leftMs <= PASS_MS, `${leftMs} ms`)
  assert.equal(judge(passes[0], 'open'), undefined)
})

test('who may not read the dataset gets neither pass nor lease', async (context) => {
  const { ask, as, cache } = await openBesideOther(context)
  await assert.rejects(ask(EVE, 'open', 'theirs'), { code: 'NOT_PERMITTED' })
  const { lease } = prepareAs('mine')
  const request = { copyId: 'theirs', purpose: 'use', lease } as const
  await assert.rejects(as(EVE).record.leaseCopy(request, 0), { code: 'NOT_PERMITTED' })
  assert.deepEqual(await cache.record.listLeases({}), [])
})

test('a lease on a copy of another node is its user’s, counts among theirs, and is given back', async (context) => {
  const { as, cache } = await openBesideOther(context)
  const { lease } = prepareAs('mine')
  const leaseId = await as(ADA).record.leaseCopy({ copyId: 'theirs', purpose: 'use', lease }, 0)
  const [held] = await cache.record.listLeases({ copyId: 'theirs' })
  assert.deepEqual([held?.leaseId, held?.holder.userId], [leaseId, ADA])
  assert.equal(await as(ADA).record.leaseCopy({ copyId: 'gone', purpose: 'use', lease }, 0), undefined)
  await assert.rejects(as(EVE).record.releaseUses({ leaseId: leaseId! }, 0), { code: 'NOT_PERMITTED' })
  assert.equal(await as(ADA).record.releaseUses({ leaseId: leaseId! }, 0), 1)
})
