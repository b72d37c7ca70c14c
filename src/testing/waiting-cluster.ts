import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { parseNode, parsePod } from '../agent/controller/cluster-objects.js'
import { ClusterView } from '../agent/controller/cluster-view.js'
import { GatedPods } from '../agent/controller/gated-pods.js'
import { Placement } from '../agent/controller/placement.js'
import { type StagingAsked, Stagings } from '../agent/controller/stagings.js'
import { ApiRefusal, type ApiServer } from '../agent/csi/api-server.js'
import { PodEvents } from '../agent/csi/pod-events.js'
import type { PrepareProgress } from '../cache/prepare/prepare-dataset.js'
import { DscError } from '../failure/dsc-error.js'
import { openSqliteRecord } from '../records/sqlite/record-store.js'
import { exampleCopy, exampleDataset } from './example-copies.js'
import { temporaryDirectory } from './temporary-directory.js'

const GIB = 1024 ** 3

/** A node of Kubernetes with this many GPUs. */
export function rawNode(name: string, gpus = 8, changes: object = {}): object {
  return {
    metadata: { uid: name, name, labels: { 'kubernetes.io/hostname': name, pool: 'gpu' } },
    spec: {},
    status: { allocatable: { cpu: '64', memory: '512Gi', pods: '110', 'nvidia.com/gpu': String(gpus) } },
    ...changes,
  }
}

/** A gated pod of `team-a` that wants a GPU and the datasets. */
export function rawPod(name: string, datasets: readonly string[], spec: object = {}): object {
  const volumes = datasets.map((dataset) => ({
    name: dataset,
    csi: { driver: 'dsc.io', volumeAttributes: { dataset } },
  }))
  return {
    metadata: { uid: `uid-${name}`, namespace: 'team-a', name, resourceVersion: '7' },
    spec: {
      schedulingGates: [{ name: 'dsc.io/staged' }],
      containers: [{ resources: { limits: { 'nvidia.com/gpu': 1 } } }],
      volumes,
      ...spec,
    },
    status: { phase: 'Pending' },
  }
}

/** A cluster of nodes with agents that stage when the test says so, and an API server in memory. */
export async function makeWaitingCluster(context: TestContext, nodes: readonly string[]) {
  const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
  context.after(() => record.close())
  for (const node of nodes)
    await record.saveNode({
      ...{ node, cacheRoot: '/cache', policy: {}, seenAtMs: record.nowMs() },
      disk: { capacityBytes: 100 * GIB, freeBytes: 100 * GIB, inodesTotal: 0, inodesFree: 0 },
      agent: { url: `http://${node}:7070`, seenAtMs: record.nowMs() },
    })
  const sent: { readonly path: string; readonly body: unknown }[] = []
  const objects = new Map<string, unknown>()
  const api: ApiServer = {
    async get(path) {
      const found = objects.get(path)
      if (found === undefined) throw new ApiRefusal(404, 'not found')
      return found
    },
    async patch(path, _kind, body) {
      sent.push({ path, body })
    },
    async send(_method, path, body) {
      sent.push({ path, body })
    },
    async *watch() {},
  }
  const asked: StagingAsked[] = []
  const under = new Map<string, { finish: () => void; fail: (error: Error) => void }>()
  let progress: (step: PrepareProgress) => void = () => {}
  const stagings = new Stagings({
    prepare(each, onProgress) {
      asked.push(each)
      progress = onProgress
      return new Promise<void>((resolve, reject) => under.set(each.node, { finish: resolve, fail: reject }))
    },
    nowMs: () => record.nowMs(),
    onEnd: () => {},
  })
  const view = new ClusterView(record)
  const placement = new Placement({ record, view, stagings })
  const catalog = {
    declared: ['flowers', 'birds', 'secret'].map((name) => exampleDataset(name)),
    rules: { datasets: { secret: ['team-b'] }, sources: {} },
  }
  const means = { api, catalog, driver: 'dsc.io', placement, view }
  const events = new PodEvents({
    ...{ api, component: 'dsc.io/staged' },
    onFailure: (error) => assert.fail(String(error)),
  })
  return {
    ...{ record, view, placement, means, sent, objects, asked },
    gates: new GatedPods({ ...means, events }),
    /** Looks at the cluster with these pods. */
    look: (pods: readonly object[] = [], raw = nodes.map((node) => rawNode(node))) =>
      view.look(
        raw.map(parseNode),
        pods.flatMap((pod) => parsePod(pod) ?? []),
      ),
    /** The node has the dataset from now on. */
    async have(node: string, dataset: string) {
      const copy = exampleCopy(dataset, { node, copyId: `${dataset}-${node}`, path: `/${dataset}/${node}` })
      await record.addAdopted(copy, record.nowMs())
    },
    tell: (step: PrepareProgress) => progress(step),
    /** Ends the staging on a node. */
    async finish(node: string, dataset: string) {
      await this.have(node, dataset)
      under.get(node)!.finish()
      await new Promise(setImmediate)
    },
    async fail(node: string, message: string) {
      under.get(node)!.fail(new DscError('QUOTA_EXCEEDED', `node ${node}: ${message}`))
      await new Promise(setImmediate)
    },
    leases: async () => (await record.listLeases({})).map(({ task, node, dataset }) => [task, node, dataset]),
    events: () =>
      sent
        .filter(({ path }) => path.endsWith('/events'))
        .map(({ body }) => {
          const { reason, message } = body as { readonly reason: string; readonly message: string }
          return `${reason}: ${message}`
        }),
    patches: () => sent.filter(({ path }) => !path.endsWith('/events')),
  }
}
