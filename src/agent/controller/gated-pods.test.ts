import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWaitingCluster, rawNode, rawPod } from '../../testing/waiting-cluster.js'
import { parseLeaseRequest } from '../calls/parse-lease-request.js'
import { parsePod } from './cluster-objects.js'

const TASK = 'queued:pod:team-a/train'
const pod = (datasets: readonly string[], spec?: object) => parsePod(rawPod('train', datasets, spec))!
const DOWNLOADING = {
  ...{ step: 'downloading', writtenBytes: 2 * 1024 ** 3, totalBytes: 15 * 1024 ** 3 },
  ...{ doneFiles: 1, totalFiles: 2, origins: undefined },
} as const

test('a gated pod waits for its data, then its gate opens with a preference for the nodes that have it', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01', 'gpu-02', 'gpu-03'])
  await cluster.have('gpu-02', 'flowers')
  await cluster.look()
  const waiting = pod(['flowers', 'birds'])
  await cluster.gates.reconcile(waiting)
  cluster.tell(DOWNLOADING as Parameters<typeof cluster.tell>[0])
  assert.deepEqual(
    cluster.asked.map(({ node, dataset, lease, isPrefetch }) => [node, dataset.name, lease.task, isPrefetch]),
    [['gpu-02', 'birds', TASK, false]],
    'where the other dataset is',
  )
  assert.deepEqual(cluster.asked[0]!.lease.parties, ['namespace:team-a'], 'shares count it for the namespace')
  assert.deepEqual(cluster.events(), ['Staging: staging on gpu-02: birds: waiting for its first bytes'])
  assert.deepEqual(cluster.patches(), [])

  await cluster.finish('gpu-02', 'birds')
  await cluster.have('gpu-03', 'birds')
  await cluster.have('gpu-03', 'flowers')
  await cluster.have('gpu-01', 'flowers')
  await cluster.look()
  await cluster.gates.reconcile(waiting)
  const prefer = (weight: number, node: string) => ({
    weight,
    preference: {
      matchExpressions: [{ key: 'kubernetes.io/hostname', values: [node], operator: 'In' }],
    },
  })
  assert.deepEqual(cluster.patches(), [
    {
      path: '/api/v1/namespaces/team-a/pods/train',
      body: [
        { op: 'test', path: '/metadata/resourceVersion', value: '7' },
        { op: 'replace', path: '/spec/schedulingGates', value: [] },
        {
          op: 'add',
          path: '/spec/affinity',
          value: {
            nodeAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [prefer(100, 'gpu-02'), prefer(50, 'gpu-03')],
            },
          },
        },
      ],
    },
  ])
  assert.deepEqual((await cluster.leases()).toSorted(), [
    [TASK, 'gpu-02', 'birds'],
    [TASK, 'gpu-02', 'flowers'],
  ])
  await cluster.placement.keepLeases((task) => task === TASK)
  assert.equal((await cluster.leases()).length, 2, 'until its volumes have their own')
  await cluster.placement.keepLeases(() => false)
  assert.deepEqual(await cluster.leases(), [])
})

test('other gates and preferences of a pod stay', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01'])
  await cluster.have('gpu-01', 'flowers')
  await cluster.look()
  const own = { weight: 1, preference: { matchExpressions: [{ key: 'disk', operator: 'Exists' }] } }
  const affinity = {
    nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [own] },
    podAntiAffinity: { some: 'thing' },
  }
  const schedulingGates = [{ name: 'other' }, { name: 'dsc.io/staged' }]
  await cluster.gates.reconcile(pod(['flowers'], { affinity, schedulingGates }))
  const [, gates, added] = cluster.patches()[0]!.body as { readonly value: typeof affinity }[]
  assert.deepEqual(gates!.value, [{ name: 'other' }])
  assert.deepEqual(added!.value.podAntiAffinity, { some: 'thing' })
  const terms = added!.value.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution
  assert.deepEqual([terms.length, terms[0]], [2, own])
})

test('a node without room is passed over for another; without any, the pod is told of each', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01', 'gpu-02'])
  await cluster.look()
  const waiting = pod(['flowers'])
  await cluster.gates.reconcile(waiting)
  await cluster.fail('gpu-01', 'no room for flowers')
  await cluster.gates.reconcile(waiting)
  assert.deepEqual(
    cluster.asked.map(({ node }) => node),
    ['gpu-01', 'gpu-02'],
  )
  await cluster.fail('gpu-02', 'no room for flowers')
  await cluster.gates.reconcile(waiting)
  assert.equal(
    cluster.events().at(-1),
    'StagingRefused: no node has room: node gpu-01: no room for flowers; node gpu-02: no room for flowers',
  )
  assert.deepEqual(cluster.patches(), [], 'its gate stays closed')
})

for (const { name, datasets, told } of [
  {
    name: 'a dataset of another namespace',
    datasets: ['secret'],
    told: /namespace "team-a" may not read secret/,
  },
  {
    name: 'an unknown dataset',
    datasets: ['flwers'],
    told: /no dataset is called "flwers"; try: dataset: flowers/,
  },
  {
    name: 'a URL that nobody allowed',
    datasets: ['s3://other/x/'],
    told: /may not name the source s3:\/\/other\/x\//,
  },
]) {
  test(`${name} is neither staged nor let through`, async (context) => {
    const cluster = await makeWaitingCluster(context, ['gpu-01'])
    await cluster.look()
    await cluster.gates.reconcile(pod(datasets))
    assert.match(cluster.events()[0]!, told)
    assert.deepEqual([cluster.asked, cluster.patches()], [[], []])
  })
}

test('a pod that no node suits for a minute is left to the scheduler', async (context) => {
  const clock = { ms: 0 }
  context.mock.method(performance, 'now', () => clock.ms)
  const cluster = await makeWaitingCluster(context, ['gpu-01'])
  const reconcile = (atMs: number) => {
    clock.ms = atMs
    return cluster.gates.reconcile(pod(['flowers']))
  }
  const away = rawNode('gpu-01', 8, { spec: { unschedulable: true } })
  await cluster.look([], [away])
  await reconcile(0)
  assert.deepEqual(cluster.events(), ['Staging: no node with an agent of dsc suits it yet'])
  await cluster.look()
  await reconcile(59_000)
  assert.equal(cluster.asked.length, 1, 'the node is back')
  cluster.placement.forget(TASK)
  await cluster.look([], [away])
  for (const atMs of [60_000, 119_999]) await reconcile(atMs)
  assert.deepEqual(cluster.patches(), [])
  await reconcile(120_000)
  assert.match(cluster.events().at(-1)!, /^NotStaged: no node with an agent of dsc suits this pod/)
  assert.equal(cluster.patches().length, 1)
})

test('a pod without datasets is left to the scheduler at once', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01'])
  await cluster.look()
  await cluster.gates.reconcile(pod([]))
  assert.equal(cluster.patches().length, 1)
})

test('claims count like volumes; a volume with a Secret is for kubelet alone', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01'])
  await cluster.look()
  const claims = ['bound', 'unbound', 'other'].map((claimName) => ({
    name: claimName,
    persistentVolumeClaim: { claimName },
  }))
  const csi = {
    driver: 'dsc.io',
    volumeAttributes: { dataset: 'hf://a/b' },
    nodePublishSecretRef: { name: 'hub' },
  }
  const volumes = [...claims, { name: 'private', csi }]
  await cluster.gates.reconcile(pod([], { volumes }))
  assert.deepEqual(cluster.events(), ['StagingRefused: no claim is called "bound" yet'])
  const claim = (spec: object, name: string) =>
    cluster.objects.set(`/api/v1/namespaces/team-a/persistentvolumeclaims/${name}`, { spec })
  claim({ volumeName: 'pv-1' }, 'bound')
  claim({ storageClassName: 'dsc' }, 'unbound')
  claim({ volumeName: 'pv-2' }, 'other')
  const attributes = { dataset: 'flowers', 'storage.kubernetes.io/csiProvisionerIdentity': 'x' }
  cluster.objects.set('/api/v1/persistentvolumes/pv-1', {
    spec: { csi: { driver: 'dsc.io', volumeAttributes: attributes } },
  })
  cluster.objects.set('/api/v1/persistentvolumes/pv-2', {
    spec: { csi: { driver: 'ebs', volumeAttributes: {} } },
  })
  cluster.objects.set('/apis/storage.k8s.io/v1/storageclasses/dsc', {
    ...{ provisioner: 'dsc.io', parameters: { dataset: 'birds' } },
  })
  await cluster.gates.reconcile(pod([], { volumes }))
  assert.deepEqual(cluster.asked.map(({ dataset }) => dataset.name).toSorted(), ['birds', 'flowers'])
  const { mock } = context.mock.method(cluster.means.api, 'get')
  await cluster.gates.reconcile(pod([], { volumes }))
  assert.equal(mock.callCount(), 0, 'a round asks for no claim again')
  cluster.gates.keepOnly(new Map())
  await cluster.gates.reconcile(pod([], { volumes }))
  assert.equal(mock.callCount(), 6, 'but for those of a later pod')
})

test('a pod goes where another waits for the same data, rather than to a node that has nothing', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01', 'gpu-02'])
  await cluster.look([], [rawNode('gpu-01', 1), rawNode('gpu-02')])
  const containers = [{ resources: { limits: { 'nvidia.com/gpu': 2 } } }]
  await cluster.gates.reconcile(parsePod(rawPod('large', ['flowers'], { containers }))!)
  await cluster.gates.reconcile(parsePod(rawPod('small', ['flowers']))!)
  assert.deepEqual(
    cluster.asked.map(({ node }) => node),
    ['gpu-02'],
    'gpu-01 would do for the small one, too',
  )
})

test('pods that wait for the same data share one download, and no more go to a node than fit', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01', 'gpu-02'])
  const raw = ['gpu-01', 'gpu-02'].map((name) => rawNode(name, 2))
  await cluster.look([], raw)
  const pods = ['a', 'b', 'c'].map((name) => parsePod(rawPod(name, ['flowers']))!)
  for (const each of pods) await cluster.gates.reconcile(each)
  assert.deepEqual(
    cluster.asked.map(({ node }) => node),
    ['gpu-01', 'gpu-02'],
  )
  for (const node of ['gpu-01', 'gpu-02']) await cluster.finish(node, 'flowers')
  await cluster.look([], raw)
  for (const each of pods) await cluster.gates.reconcile(each)
  assert.equal(cluster.patches().length, 3)
  assert.deepEqual((await cluster.leases()).toSorted(), [
    ['queued:pod:team-a/a', 'gpu-01', 'flowers'],
    ['queued:pod:team-a/b', 'gpu-01', 'flowers'],
    ['queued:pod:team-a/c', 'gpu-02', 'flowers'],
  ])
})

test('pods that choose at the same time see what each other has chosen', async (context) => {
  const names = ['gpu-01', 'gpu-02', 'gpu-03']
  const cluster = await makeWaitingCluster(context, names)
  await cluster.look(
    [],
    names.map((name) => rawNode(name, 2)),
  )
  const pods = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => parsePod(rawPod(name, ['flowers']))!)
  await Promise.all(pods.map((each) => cluster.gates.reconcile(each)))
  assert.deepEqual(cluster.asked.map(({ node }) => node).toSorted(), names)
})

test('pods with different data leave each other room to share theirs', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01', 'gpu-02'])
  await cluster.look(
    [],
    ['gpu-01', 'gpu-02'].map((name) => rawNode(name, 2)),
  )
  for (const [name, dataset] of Object.entries({ a: 'flowers', b: 'birds', c: 'flowers', d: 'birds' }))
    await cluster.gates.reconcile(parsePod(rawPod(name, [dataset]))!)
  assert.deepEqual(
    cluster.asked.map(({ node, dataset }) => `${dataset.name} on ${node}`),
    ['flowers on gpu-01', 'birds on gpu-02'],
  )
})

test('a pod that was placed counts once, and so does a later pod of the same name', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01', 'gpu-02'])
  const raw = ['gpu-01', 'gpu-02'].map((name) => rawNode(name, 2))
  await cluster.have('gpu-01', 'flowers')
  const reconcile = (name: string) => cluster.gates.reconcile(parsePod(rawPod(name, ['flowers']))!)
  const placed = rawPod('a', ['flowers'], { nodeName: 'gpu-01' })
  await cluster.look([], raw)
  await reconcile('a')
  await cluster.look([placed], raw)
  cluster.placement.forget('queued:pod:team-a/a')
  await reconcile('b')
  assert.deepEqual(cluster.asked, [], 'gpu-01 has room for another')
  const other = rawPod('other', [], { nodeName: 'gpu-01' })
  await cluster.look([placed, other], raw)
  await reconcile('a')
  assert.deepEqual(
    cluster.asked.map(({ node }) => node),
    ['gpu-02'],
  )
})

test('two pods with the same long beginning of their names have a lease each, and none that agents refuse', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01'])
  await cluster.have('gpu-01', 'flowers')
  await cluster.look()
  const name = 'n'.repeat(252)
  for (const end of ['a', 'b']) {
    const raw = rawPod(`${name}${end}`, ['flowers']) as { metadata: object }
    const metadata = { ...raw.metadata, namespace: 's'.repeat(63) }
    await cluster.gates.reconcile(parsePod({ ...raw, metadata })!)
  }
  const tasks = (await cluster.leases()).map(([task]) => task!)
  assert.equal(new Set(tasks).size, 2)
  for (const task of tasks) parseLeaseRequest({ task, holder: { kind: 'ttl' }, expiresAtMs: 1 }, 0)
})
