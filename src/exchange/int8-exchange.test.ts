import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { joinExchange } from './join-exchange.js'
import {
  makeGradients,
  meanOf,
  planOf,
  runStep,
  withHosts,
  withSessions,
} from './local-sessions.test.fixture.js'
import type { PlanFile } from './plan-files.js'

const SHAPES = [[7, 300_000], [1], [5000, 3, 800]]

for (const ranks of [1, 2, 3, 5])
  test(`int8: ${ranks} ranks end with the same means, each off by less than 1/63 of the largest`, async () => {
    const plan = planOf(ranks, 'int8', SHAPES)
    await withSessions(plan, undefined, async (sessions) => {
      for (const [index, scale] of [1e-6, 1e20, 1e-7].entries()) {
        const gradients = makeGradients(plan, index + 1, scale)
        const means = new Map([...gradients[0]!.keys()].map((name) => [name, meanOf(gradients, name)]))
        const reports = await runStep(sessions, gradients)
        for (const [name, mean] of means) {
          for (const rank of gradients)
            assert.deepEqual(rank.get(name), gradients[0]!.get(name), `${name} differs between ranks`)
          const worst = mean.reduce(
            (most, value, at) => Math.max(most, Math.abs(gradients[0]!.get(name)![at]! - value)),
            0,
          )
          assert.ok(worst < (scale * 0.5) / 63, `${name}: ${worst} of ${scale}`)
          if (ranks > 1 && mean.length > 500) assert.ok(worst > scale / 1000, `${name}: ${worst}`)
        }
        const wireType = ranks === 1 ? 'fp32' : 'int8'
        for (const { buckets } of reports)
          for (const bucket of buckets)
            assert.deepEqual([bucket.wireType, bucket.outcome], [wireType, 'clean'])
      }
    })
  })

test('int8: the means are those of the vectors, to which the Python hook is held as well', async () => {
  const file = new URL('../../fixtures/exchange/int8-vectors.json', import.meta.url)
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
    cases: { sizes: number[]; gradients: string[][]; means: string[] }[]
  }
  const floats = (text: string) => new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer)
  for (const { sizes, gradients: given, means } of cases) {
    const gradients = given.map((rank) => new Map(rank.map((text, at) => [`0.${at}`, floats(text)])))
    await withSessions(planOf(given.length, 'int8', [sizes]), undefined, async (sessions) => {
      await runStep(sessions, gradients)
    })
    assert.deepEqual([...gradients[0]!.values()], means.map(floats))
  }
})

test('int8: a true NaN reaches every rank, and the next step knows nothing of it', async () => {
  const plan = planOf(3, 'int8', [[2000, 5]])
  await withSessions(plan, undefined, async (sessions) => {
    const broken = makeGradients(plan, 2, 1)
    broken[2]!.get('0.0')![7] = Number.NaN
    const [report] = await runStep(sessions, broken)
    assert.deepEqual([report!.buckets[0]!.outcome, report!.buckets[0]!.wireType], ['not finite', 'int8'])
    for (const rank of broken) assert.ok(Number.isNaN(rank.get('0.0')![7]))
    const [again, fresh] = [makeGradients(plan, 3, 1), makeGradients(plan, 3, 1)]
    await runStep(sessions, again)
    // A new session, as after a restart: nothing of the old one has to be saved.
    await withSessions(plan, undefined, async (others) => {
      await runStep(others, fresh)
    })
    assert.deepEqual(again, fresh)
  })
})

for (const hosts of ['aabb', 'abb', 'aaa', 'aaaabbbb'])
  test(`int8, ranks on hosts ${hosts}: hosts sum in fp32, and each mean is off by what int8 rounds`, async () => {
    const plan: PlanFile = { ...planOf(hosts.length, 'int8', SHAPES), levels: 2 }
    const isNarrow = hosts.includes('b')
    await withHosts([...hosts], { plan, mode: undefined }, async (sessions) => {
      const gradients = makeGradients(plan, 1, 1e-6)
      const means = new Map([...gradients[0]!.keys()].map((name) => [name, meanOf(gradients, name)]))
      const [report] = await runStep(sessions, gradients)
      const wireTypes = report!.buckets.map(({ wireType }) => wireType)
      assert.deepEqual(wireTypes, Array(SHAPES.length).fill(isNarrow ? 'int8' : 'fp32'))
      for (const [name, mean] of means) {
        for (const rank of gradients)
          assert.deepEqual(rank.get(name), gradients[0]!.get(name), `${name} differs between ranks`)
        const errors = mean.map((value, at) => Math.abs(gradients[0]!.get(name)![at]! - value))
        const worst = errors.reduce((most, error) => Math.max(most, error), 0)
        assert.ok(worst < (isNarrow ? 0.5e-6 / 63 : 1e-12), `${name}: ${worst}`)
        if (isNarrow && mean.length > 500) assert.ok(worst > 1e-9, `${name}: ${worst}`)
      }
    })
  })

test('int8: not in a ring', async () => {
  const joined = joinExchange({
    rendezvous: { host: '127.0.0.1', port: 9 },
    plan: planOf(2, 'int8', [[5]]),
    mode: 'ring',
  })
  await assert.rejects(joined, { code: 'USAGE', message: /not in mode ring/ })
})
