// One round after the other on a fresh cluster of pretended nodes; prints where pods landed and what they held.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { reviewPod } from '../../dist/agent/controller/review-pod.js'
import { Controller } from '../../dist/agent/controller/run-controller.js'
import { Webhook } from '../../dist/agent/controller/webhook.js'
import { findApiServer } from '../../dist/agent/csi/api-server.js'
import { openSqliteRecord } from '../../dist/records/sqlite/record-store.js'
import { startControlPlane } from './control-plane.mjs'

const NODES = 100
const GPUS = 2
const PODS = 140
const DATASETS = 7
/** Nodes that have each dataset at the beginning: room for 6 of the 20 pods that want it. */
const COPIES = 3
/** How long a download takes, s. */
const STAGE_S = 20
const GIB = 1024 ** 3
const ROUNDS = process.argv.slice(2)
const folder = join(process.env.W, 'run')
const here = import.meta.dirname
const chart = join(here, '../kubernetes')

const { admin, start } = await startControlPlane(folder)
const nodeName = (at) => `gpu-${String(at).padStart(3, '0')}`
const datasets = Array.from({ length: DATASETS }, (_, at) => `set-${at}`)
const dataset = (name) => ({ name, source: `s3://bucket/${name}/`, include: [], exclude: [] })

// The controller's rights, from the chart's own files.
admin.kubectl(['create', 'ns', 'dsc'])
admin.kubectl(['create', 'ns', 'team-a'])
admin.kubectl(['apply', '-f', join(chart, 'controller/access.yaml'), '-f', join(chart, 'base/driver.yaml')])
const account = join(folder, 'account')
mkdirSync(account)
writeFileSync(
  join(account, 'token'),
  admin.kubectl(['create', 'token', 'dsc-controller', '-n', 'dsc', '--duration=2h']),
)
execFileSync('cp', [join(folder, 'pki/ca.crt'), account])

startKwok()
if (ROUNDS.length === 0 || ROUNDS.includes('kueue')) await startKueue()

function startKwok() {
  const stage = (kind, name, next, expressions) => ({
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: 'v1', kind },
      selector: { matchExpressions: expressions },
      next,
    },
  })
  const missing = (key) => ({ key, operator: 'DoesNotExist' })
  const stages = [
    stage(
      'Node',
      'node-initialize',
      {
        statusTemplate: `
{{ $now := Now }}
conditions:
- {type: Ready, status: "True", reason: KubeletReady, message: kwok, lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
`,
      },
      [
        {
          key: '.status.conditions.[] | select( .type == "Ready" ) | .status',
          operator: 'NotIn',
          values: ['True'],
        },
      ],
    ),
    stage(
      'Pod',
      'pod-ready',
      {
        statusTemplate: `
{{ $now := Now }}
conditions:
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: PodScheduled, status: "True", lastTransitionTime: {{ $now | Quote }}}
phase: Running
startTime: {{ $now | Quote }}
`,
      },
      [
        missing('.metadata.deletionTimestamp'),
        missing('.status.podIP'),
        { key: '.status.phase', operator: 'In', values: ['Pending'] },
        { key: '.spec.nodeName', operator: 'Exists' },
      ],
    ),
    stage('Pod', 'pod-delete', { delete: true, finalizers: { empty: true } }, [
      { key: '.metadata.deletionTimestamp', operator: 'Exists' },
    ]),
  ]
  const file = join(folder, 'kwok.yaml')
  writeFileSync(file, stages.map((each) => JSON.stringify(each)).join('\n---\n'))
  start('kwok', 'kwok', '--kubeconfig', admin.kubeconfig, '--manage-all-nodes=true', '--config', file)
}

async function startKueue() {
  const kueue = execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kueue'], {
    cwd: join(process.env.W, 'go/kueue'),
    encoding: 'utf8',
    env: { ...process.env, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' },
  }).trim()
  admin.kubectl(['create', '--save-config=false', '-f', join(kueue, 'config/components/crd/bases')])
  admin.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  admin.kubectl(['create', 'ns', 'kueue-system'])
  const file = join(folder, 'kueue.yaml')
  writeFileSync(
    file,
    `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: ':8081'}
metrics: {bindAddress: '0'}
webhook: {port: 9444, certDir: ${join(folder, 'pki')}}
leaderElection: {leaderElect: false}
clientConnection: {qps: 200, burst: 400}
internalCertManagement: {enable: false}
integrations: {frameworks: [batch/job]}
featureGates: {VisibilityOnDemand: false}
`,
  )
  process.env.KUBECONFIG = admin.kubeconfig
  start('kueue', 'kueue', '--config', file)
  await sleep(5000)
  const kind = (name, spec, kind) => ({
    apiVersion: 'kueue.x-k8s.io/v1beta2',
    kind,
    metadata: { name },
    spec,
  })
  admin.apply([
    kind('gpu', {}, 'ResourceFlavor'),
    kind('staged', { controllerName: 'dsc.io/staged' }, 'AdmissionCheck'),
    kind(
      'gpus',
      {
        namespaceSelector: {},
        admissionChecksStrategy: { admissionChecks: [{ name: 'staged' }] },
        resourceGroups: [
          {
            coveredResources: ['cpu', 'nvidia.com/gpu'],
            flavors: [
              {
                name: 'gpu',
                resources: [
                  { name: 'cpu', nominalQuota: 10_000 },
                  { name: 'nvidia.com/gpu', nominalQuota: NODES * GPUS },
                ],
              },
            ],
          },
        ],
      },
      'ClusterQueue',
    ),
    {
      ...kind('gpus', { clusterQueue: 'gpus' }, 'LocalQueue'),
      metadata: { name: 'gpus', namespace: 'team-a' },
    },
  ])
}

/** The nodes' agents in one process: each takes 20 s to stage, then labels its node as a real one does. */
async function startAgents(record) {
  const url = await new Promise((resolve) => {
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const node = request.url.split('/')[1]
      const call = JSON.parse(body)
      for (let second = 0; second < STAGE_S; second++) {
        const progress = {
          step: 'downloading',
          writtenBytes: second * GIB,
          totalBytes: STAGE_S * GIB,
          doneFiles: second,
          totalFiles: STAGE_S,
        }
        response.write(`${JSON.stringify({ progress })}\n`)
        await sleep(1000)
      }
      await have(record, node, call.dataset.name)
      const lease = await record.leaseReady(
        { dataset: call.dataset.name, node, lease: call.lease },
        record.nowMs(),
      )
      response.end(`${JSON.stringify({ prepared: lease })}\n`)
    }).listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`))
  })
  const report = async () => {
    for (let at = 0; at < NODES; at++) {
      const atMs = record.nowMs()
      const disk = { capacityBytes: 1000 * GIB, freeBytes: 900 * GIB, inodesTotal: 0, inodesFree: 0 }
      const agent = { url: `${url}/${nodeName(at)}`, seenAtMs: atMs }
      await record.saveNode({
        node: nodeName(at),
        cacheRoot: '/cache',
        policy: {},
        disk,
        seenAtMs: atMs,
        agent,
      })
    }
  }
  await report()
  return setInterval(() => void report(), 10_000)
}

const had = new Map()

async function have(record, node, name) {
  const path = `/cache/${name}/${node}`
  const nowMs = record.nowMs()
  await record.addAdopted(
    {
      ...{
        copyId: `${name}-${node}`,
        dataset: name,
        node,
        version: 'v',
        state: 'ready',
        origin: 's3',
        source: dataset(name),
      },
      ...{
        directory: path,
        path,
        chargedBytes: GIB,
        chargedInodes: 1,
        writtenBytes: GIB,
        files: 1,
        contentBytes: GIB,
        lock: null,
      },
      ...{ lastTask: null, lastUsedAtMs: nowMs, createdAtMs: nowMs, readyAtMs: nowMs },
    },
    nowMs,
  )
  had.set(`${node} ${name}`, Date.now())
  await admin.label(node, `dsc.io/${name}`)
}

function makePod(at, extra = {}) {
  const name = `set-${at % DATASETS}`
  return {
    ...extra,
    restartPolicy: 'Never',
    containers: [
      { name: 'train', image: 'x', resources: { requests: { cpu: '1' }, limits: { 'nvidia.com/gpu': 1 } } },
    ],
    volumes: [
      { name: 'data', csi: { driver: 'dsc.io', readOnly: true, volumeAttributes: { dataset: name } } },
    ],
  }
}

async function play(round) {
  had.clear()
  const nodes = Array.from({ length: NODES }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName(at),
      labels: { 'kubernetes.io/hostname': nodeName(at) },
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
    },
    status: {
      allocatable: { cpu: '64', memory: '256Gi', pods: '110', 'nvidia.com/gpu': GPUS },
      capacity: { cpu: '64', memory: '256Gi', pods: '110', 'nvidia.com/gpu': GPUS },
    },
  }))
  admin.apply(nodes)
  const record = await openSqliteRecord(join(folder, `${round}.db`))
  const reporting = await startAgents(record)
  for (const [at, name] of datasets.entries())
    for (let copy = 0; copy < COPIES; copy++)
      await have(record, nodeName((at * COPIES + copy * 31) % NODES), name)
  const stopping = new AbortController()
  const api = findApiServer(
    { KUBERNETES_SERVICE_HOST: '10.98.0.1', KUBERNETES_SERVICE_PORT: '6443' },
    stopping.signal,
    account,
  )
  const catalog = { declared: datasets.map(dataset), rules: { datasets: {}, sources: {} } }
  const means = {
    api,
    record,
    catalog,
    driver: 'dsc.io',
    access: { token: undefined, ca: undefined },
    isLeading: () => true,
    note: (line) => console.log(`  ${line}`),
  }
  const working = round === 'plain' ? undefined : new Controller(means, stopping.signal).run()
  const webhook = round === 'kueue' ? await serveWebhook(means) : undefined
  await sleep(3000)
  const beganAt = Date.now()
  const pods = Array.from({ length: PODS }, (_, at) => at)
  const metadata = (at) => ({ name: `${round}-${at}`, namespace: 'team-a' })
  if (round === 'kueue')
    admin.apply(
      pods.map((at) => ({
        ...{ apiVersion: 'batch/v1', kind: 'Job' },
        metadata: { ...metadata(at), labels: { 'kueue.x-k8s.io/queue-name': 'gpus' } },
        spec: { suspend: true, backoffLimit: 0, template: { spec: makePod(at) } },
      })),
    )
  else {
    const gates = round === 'gates' ? { schedulingGates: [{ name: 'dsc.io/staged' }] } : {}
    admin.apply(
      pods.map((at) => ({ apiVersion: 'v1', kind: 'Pod', metadata: metadata(at), spec: makePod(at, gates) })),
    )
  }
  const found = await waitForPods()
  report(round, found, beganAt)
  stopping.abort()
  clearInterval(reporting)
  webhook?.stop()
  await working
  await record.close()
  admin.kubectl([
    'delete',
    round === 'kueue' ? 'jobs' : 'pods',
    '-n',
    'team-a',
    '--all',
    '--force',
    '--grace-period=0',
  ])
  if (round === 'kueue') admin.kubectl(['delete', 'mutatingwebhookconfigurations', '--all'])
  admin.kubectl(['delete', 'nodes', '--all'])
}

/** A busy apiserver may refuse; the next second asks again. */
function listPods() {
  try {
    return admin.list('pods', 'team-a')
  } catch {
    return []
  }
}

async function waitForPods() {
  for (let tries = 0; tries < 200; tries++) {
    const found = listPods().filter(({ spec }) => spec.nodeName)
    if (found.length === PODS) return found
    if (tries % 20 === 0) console.log(`  ${found.length} of ${PODS} pods placed`)
    await sleep(1000)
  }
  throw new Error('pods are still waiting after 200 s')
}

/** A pod holds its GPU without its data from the moment it is placed until the data is there; without dsc, 20 s. */
function report(round, pods, beganAt) {
  let hits = 0
  let heldS = 0
  let lastS = 0
  for (const { spec, status } of pods) {
    const name = spec.volumes.find(({ csi }) => csi).csi.volumeAttributes.dataset
    const placedAt = Date.parse(
      status.conditions.find(({ type }) => type === 'PodScheduled').lastTransitionTime,
    )
    const readyAt = had.get(`${spec.nodeName} ${name}`)
    if (readyAt !== undefined && readyAt - placedAt < 1000) hits++
    else heldS += readyAt === undefined ? STAGE_S : (readyAt - placedAt) / 1000
    lastS = Math.max(lastS, (placedAt - beganAt) / 1000)
  }
  const copies = had.size - DATASETS * COPIES
  console.log(
    `${round}: ${hits} of ${pods.length} pods (${((100 * hits) / pods.length).toFixed(1)} %) on a node with their data; ${heldS.toFixed(0)} GPU-seconds held while staging; last pod placed after ${lastS.toFixed(0)} s; ${copies} copies staged`,
  )
}

async function serveWebhook(means) {
  const listNodes = async (name) =>
    (await means.record.listCopies({ dataset: name }, means.record.nowMs())).map(({ node }) => node)
  const listLeased = async (task) => (await means.record.listLeases({ task })).map(({ node }) => node)
  const review = (raw) => reviewPod({ ...means, listNodes, listLeased }, raw)
  const webhook = new Webhook({ folder: join(folder, 'pki'), port: 9443, note: means.note, review })
  await webhook.renew()
  const text = admin.kubectl([
    'create',
    '--dry-run=client',
    '-o',
    'json',
    '-f',
    join(chart, 'webhook/webhook.yaml'),
  ])
  const object = JSON.parse(text)
  for (const each of object.webhooks)
    each.clientConfig = {
      url: 'https://10.98.0.1:9443/pods',
      caBundle: readFileSync(join(folder, 'pki/ca.crt')).toString('base64'),
    }
  admin.apply([object])
  await sleep(2000)
  return webhook
}

for (const round of ROUNDS.length > 0 ? ROUNDS : ['plain', 'gates', 'kueue']) await play(round)
process.exit(0)
