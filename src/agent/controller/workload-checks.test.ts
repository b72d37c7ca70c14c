import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWaitingCluster, rawPod } from '../../testing/waiting-cluster.js'
import { judgeStates, WorkloadChecks } from './workload-checks.js'
import { parseCheck, parseWorkload } from './workload-object.js'

const KUEUE = '/apis/kueue.x-k8s.io/v1beta2'
const CHECK = { metadata: { uid: 'c', name: 'staged' }, spec: { controllerName: 'dsc.io/staged' } }
const READY = { state: 'ready', nodes: ['gpu-01'] } as const
const COMING = { state: 'staging', message: 'staging on gpu-01: flowers', leftMs: undefined } as const
const REFUSED = { state: 'refused', message: 'no node has room: …' } as const

for (const { name, states, hasQuota, expected } of [
  { name: 'nothing to stage', states: [], hasQuota: true, expected: ['Ready', undefined] },
  { name: 'its data there', states: [READY], hasQuota: false, expected: ['Ready', undefined] },
  {
    name: 'no node that suits it',
    states: [{ state: 'unsuited' } as const],
    hasQuota: true,
    expected: ['Ready', undefined],
  },
  { name: 'data on its way', states: [READY, COMING], hasQuota: false, expected: ['Pending', undefined] },
  {
    name: 'quota and a short download',
    states: [{ ...COMING, leftMs: 20_000 }],
    hasQuota: true,
    expected: ['Pending', undefined],
  },
  {
    name: 'quota and a download of 90 s',
    states: [{ ...COMING, leftMs: 90_000 }, COMING],
    hasQuota: true,
    expected: ['Retry', 90],
  },
  {
    name: 'a long download, but no quota',
    states: [{ ...COMING, leftMs: 90_000 }],
    hasQuota: false,
    expected: ['Pending', undefined],
  },
  {
    name: 'quota and a download of hours',
    states: [{ ...COMING, leftMs: 9e6 }],
    hasQuota: true,
    expected: ['Retry', 600],
  },
  { name: 'no room', states: [REFUSED], hasQuota: false, expected: ['Pending', undefined] },
  { name: 'quota, but no room', states: [READY, REFUSED], hasQuota: true, expected: ['Retry', 60] },
]) {
  test(`the check of a workload with ${name} is ${expected[0]}`, () => {
    const { state, requeueAfterSeconds } = judgeStates(states, ['flowers'], hasQuota)
    assert.deepEqual([state, requeueAfterSeconds], expected)
  })
}

/** A workload of `team-a` with one set of pods. */
function rawWorkload(datasets: readonly string[], status: object = {}, count = 2): object {
  const { spec } = rawPod('x', datasets) as { readonly spec: object }
  return {
    metadata: { uid: 'w', namespace: 'team-a', name: 'job-1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { podSets: [{ name: 'main', count, template: { spec } }] },
    status: { admissionChecks: [{ name: 'staged', state: 'Pending', message: '' }], ...status },
  }
}

async function answer(context: Parameters<typeof makeWaitingCluster>[0], nodes: readonly string[]) {
  const cluster = await makeWaitingCluster(context, nodes)
  await cluster.look()
  let nowMs = Date.UTC(2026, 0, 1)
  const checks = new WorkloadChecks({ ...cluster.means, kueue: KUEUE, nowMs: () => nowMs })
  const reconcile = async (raw: object) => {
    const workload = parseWorkload(raw)!
    await checks.reconcile(workload, checks.findCheck(workload, [parseCheck(CHECK)])!)
  }
  return { ...cluster, checks, reconcile, wait: (ms: number) => (nowMs += ms) }
}

test('a workload without quota is staged as a prefetch, with quota as a job; its check is Ready once all is there', async (context) => {
  const cluster = await answer(context, ['gpu-01', 'gpu-02'])
  await cluster.reconcile(rawWorkload(['flowers'], {}, 10))
  assert.deepEqual(
    cluster.asked.map(({ node, lease, isPrefetch }) => [node, lease.task, isPrefetch]),
    ['gpu-01', 'gpu-02'].map((node) => [node, 'queued:workload:team-a/job-1/main', true]),
    'ten pods need both nodes',
  )
  const [told] = cluster.patches()
  assert.deepEqual(told, {
    path: `${KUEUE}/namespaces/team-a/workloads/job-1/status`,
    body: [
      { op: 'test', path: '/status/admissionChecks/0/name', value: 'staged' },
      { op: 'test', path: '/status/admissionChecks/0/state', value: 'Pending' },
      {
        op: 'replace',
        path: '/status/admissionChecks/0',
        value: {
          ...{ name: 'staged', state: 'Pending' },
          message:
            'staging on gpu-01: flowers: waiting for its first bytes; on gpu-02: flowers: waiting for its first bytes',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      },
    ],
  })
  const conditions = [{ type: 'QuotaReserved', status: 'True' }]
  await cluster.reconcile(rawWorkload(['flowers'], { conditions }, 10))
  assert.deepEqual(
    cluster.asked.map(({ isPrefetch }) => isPrefetch),
    [true, true, false, false],
  )
  for (const node of ['gpu-01', 'gpu-02']) await cluster.finish(node, 'flowers')
  await cluster.look()
  await cluster.reconcile(rawWorkload(['flowers'], {}, 10))
  const { value } = (
    cluster.patches().at(-1)!.body as { readonly value: { state: string; message: string } }[]
  )[2]!
  assert.deepEqual([value.state, value.message], ['Ready', 'flowers ready on gpu-01, gpu-02'])
})

test('workloads in the queue spread over nodes; one that gets quota goes where there is room now', async (context) => {
  const cluster = await answer(context, ['gpu-01', 'gpu-02'])
  const named = (name: string, status: object = {}) => ({
    ...rawWorkload(['flowers'], status, 8),
    metadata: { uid: name, namespace: 'team-a', name, creationTimestamp: '2026-01-01T00:00:00Z' },
  })
  await cluster.reconcile(named('a'))
  await cluster.reconcile(named('b'))
  assert.deepEqual(
    cluster.asked.map(({ node }) => node),
    ['gpu-01', 'gpu-02'],
    'each fills a node',
  )
  const running = rawPod('other', [], { schedulingGates: [], nodeName: 'gpu-01' })
  await cluster.look([running])
  const conditions = [{ type: 'QuotaReserved', status: 'True' }]
  await cluster.reconcile(named('a', { conditions }))
  const { node, isPrefetch } = cluster.asked.at(-1)!
  assert.deepEqual([node, isPrefetch], ['gpu-02', false])
})

test('a workload that may not read its dataset is rejected with the reason', async (context) => {
  const cluster = await answer(context, ['gpu-01'])
  await cluster.reconcile(rawWorkload(['secret']))
  const { value } = (
    cluster.patches()[0]!.body as { readonly value: { state: string; message: string } }[]
  )[2]!
  assert.equal(value.state, 'Rejected')
  assert.match(value.message, /namespace "team-a" may not read secret/)
  assert.deepEqual(cluster.asked, [])
})

test('progress is told every 10 s; workloads that are admitted or have other checks are left alone', async (context) => {
  const cluster = await answer(context, ['gpu-01'])
  await cluster.reconcile(rawWorkload(['flowers']))
  await cluster.reconcile(rawWorkload(['flowers']))
  assert.equal(cluster.patches().length, 1)
  cluster.wait(11_000)
  await cluster.reconcile(rawWorkload(['flowers']))
  assert.equal(cluster.patches().length, 2)
  cluster.checks.keepOnly(new Map([['w', {}]]))
  await cluster.reconcile(rawWorkload(['flowers']))
  assert.equal(cluster.patches().length, 2)
  cluster.checks.keepOnly(new Map())
  await cluster.reconcile(rawWorkload(['flowers']))
  assert.equal(cluster.patches().length, 3, 'a workload that is gone is forgotten')
  const admitted = [{ type: 'Admitted', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }]
  const own = parseWorkload(rawWorkload(['flowers'], { conditions: admitted }))!
  assert.equal(cluster.checks.findCheck(own, [parseCheck(CHECK)]), undefined)
  assert.ok(cluster.checks.isWaiting(own), 'its pods have time to start')
  cluster.wait(600_000)
  assert.ok(!cluster.checks.isWaiting(own))
  const other = parseCheck({ ...CHECK, spec: { controllerName: 'someone/else' } })
  assert.equal(cluster.checks.findCheck(parseWorkload(rawWorkload([]))!, [other]), undefined)
  assert.equal(
    parseWorkload(rawWorkload([], { conditions: [{ type: 'Finished', status: 'True' }] })),
    undefined,
  )
})

test('a check of this controller becomes active, once, and no other does', async (context) => {
  const cluster = await answer(context, ['gpu-01'])
  await cluster.checks.activate(parseCheck({ ...CHECK, spec: { controllerName: 'someone/else' } }))
  await cluster.checks.activate(
    parseCheck({ ...CHECK, status: { conditions: [{ type: 'Active', status: 'True' }] } }),
  )
  assert.deepEqual(cluster.patches(), [])
  await cluster.checks.activate(parseCheck(CHECK))
  assert.equal(cluster.patches()[0]!.path, `${KUEUE}/admissionchecks/staged/status`)
})
