import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { openSource } from '../../compose-sources.js'
import { type Dataset, findOwner } from '../../model/dataset.js'
import { openFileSource } from '../../sources/file/file-source.js'
import type { OwnAccess } from '../../sources/own-access.js'
import { openCsiClient } from '../../testing/csi-client.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { type HubServer, startHubServer } from '../../testing/hub-server.js'
import { makeMemoryMounter } from '../../testing/memory-mounter.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { openCsi } from './open-csi.js'

const TOKEN = 'hf_CANARY'
const URL_OF_MODEL = 'hf://lab/model'
const KEYS = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'CANARY' }

/** A plugin behind its socket, and a hub with a private model; team-a and team-b may name it. */
async function makePlugin(context: TestContext) {
  const hub: HubServer = await startHubServer()
  context.after(() => hub.close())
  hub.commit('models/lab/model', { 'config.json': '{}' })
  hub.protect('models/lab/model', { token: TOKEN })
  const shown: (OwnAccess | undefined)[] = []
  const declared: Dataset[] = [
    { name: 'flowers', source: 's3://bucket/flowers/', endpoint: hub.endpoint, include: [], exclude: [] },
  ]
  const { cache, sources, makeDataset } = await openExampleCache(context, {
    declared,
    openSource: async (dataset, own) => {
      shown.push(own)
      if (dataset.source.startsWith('hf:')) return openSource({ endpoint: hub.endpoint, ...dataset }, own)
      return openFileSource({ ...dataset, source: `file://${sources}/flowers/` })
    },
  })
  makeDataset('flowers')
  const kubelet = await temporaryDirectory(context)
  const mounter = makeMemoryMounter()
  const told: string[] = []
  let privateCount = 0
  const allowed = ['hf://lab/*', 's3://bucket/*', 'https://data.example/*']
  const csi = await openCsi({
    cache,
    settings: {
      ...{ driver: 'dsc.io', kubelet, mounter },
      catalog: {
        declared,
        rules: { datasets: {}, sources: { '*': ['hf://open/*'], 'team-a': allowed, 'team-b': allowed } },
      },
    },
    version: '1',
    onPrivate: () => void privateCount++,
    note: (sentence) => told.push(sentence),
  })
  context.after(() => csi.stop())
  const client = openCsiClient(csi.path)
  context.after(() => client.close())
  return {
    ...{ hub, cache, shown, mounter, told, kubelet },
    privateCount: () => privateCount,
    publish: (
      pod: string,
      secrets: Readonly<Record<string, string>>,
      { dataset = URL_OF_MODEL, namespace = 'team-a' } = {},
    ) =>
      client.call('Node', 'NodePublishVolume', {
        volumeId: `csi-${pod}`,
        targetPath: `/pods/${pod}`,
        volumeCapability: { mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } },
        volumeContext: {
          dataset,
          'csi.storage.k8s.io/pod.uid': pod,
          'csi.storage.k8s.io/pod.name': pod,
          'csi.storage.k8s.io/pod.namespace': namespace,
        },
        secrets,
      }),
    unpublish: (pod: string) =>
      client.call('Node', 'NodeUnpublishVolume', { volumeId: `csi-${pod}`, targetPath: `/pods/${pod}` }),
    endpoint: { HF_ENDPOINT: hub.endpoint },
  }
}

test("a pod's own token opens a private model for its namespace alone, and is kept nowhere", async (context) => {
  const { cache, mounter, told, kubelet, hub, publish, unpublish, endpoint, privateCount } =
    await makePlugin(context)
  const denied = { code: status.NOT_FOUND, details: /private/ }
  await assert.rejects(publish('none', {}), denied)
  await assert.rejects(publish('wrong', { token: 'hf_WRONG', ...endpoint }), denied)
  await publish('one', { HF_TOKEN: `${TOKEN}\n`, ...endpoint })
  const asked = hub.requests.length
  await publish('one', { HF_TOKEN: TOKEN, ...endpoint })
  await publish('two', { token: TOKEN, ...endpoint })
  assert.equal(hub.requests.length, asked, 'the namespace has its copy already')
  await assert.rejects(publish('none', {}), denied, 'who brings no token has no part in it')
  await assert.rejects(publish('other', { token: 'hf_WRONG', ...endpoint }, { namespace: 'team-b' }), denied)
  await publish('theirs', { token: TOKEN, ...endpoint }, { namespace: 'team-b' })
  assert.equal(mounter.mounts.get('/pods/one'), mounter.mounts.get('/pods/two'))
  assert.notEqual(mounter.mounts.get('/pods/one'), mounter.mounts.get('/pods/theirs'))
  assert.ok(privateCount() > 0)

  const copies = await cache.record.listCopies({}, 0)
  assert.deepEqual(copies.map(({ dataset }) => findOwner(dataset)).toSorted(), [
    'namespace:team-a',
    'namespace:team-b',
  ])
  for (const { dataset, source } of copies) assert.deepEqual(source?.readers, [findOwner(dataset)])
  const kept = [cache.root, kubelet].flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1')),
  )
  const recorded = JSON.stringify([
    ...[copies, await cache.record.listDatasets(), await cache.record.listLeases({})],
    await cache.record.listEvents({ limit: 100 }),
  ])
  for (const text of [...told, ...kept, recorded]) assert.doesNotMatch(text, /CANARY|WRONG/)
  for (const pod of ['one', 'two', 'theirs']) await unpublish(pod)
  assert.deepEqual([await cache.record.listLeases({}), mounter.mounts.size], [[], 0])
})

test("a pod's own keys go to the bucket that its Secret names, where dsc.yaml knows the server", async (context) => {
  const { shown, publish, hub } = await makePlugin(context)
  const dataset = 's3://bucket/flowers/'
  await publish('keys', { ...KEYS, AWS_REGION: 'eu-1', AWS_ENDPOINT_URL: hub.endpoint }, { dataset })
  const [own] = shown
  assert.ok(own?.scheme === 's3')
  assert.deepEqual(await own.getKeys(), {
    accessKeyId: 'AKIA',
    secretAccessKey: 'CANARY',
    sessionToken: undefined,
  })
  assert.deepEqual([own.endpoint, own.region, own.isPathStyle], [hub.endpoint, 'eu-1', true])
  await publish('plain', {}, { dataset })
  assert.deepEqual(
    shown.slice(1),
    [undefined],
    'without a Secret the agent reads it again, with its own keys',
  )
})

for (const { what, secrets, dataset = URL_OF_MODEL, namespace, code = status.INVALID_ARGUMENT, says } of [
  {
    what: 'a key that dsc does not know',
    secrets: { password: 'CANARY' },
    says: 'nodePublishSecretRef: the Secret has "password"; for hf:// it may have HF_TOKEN, token, HF_ENDPOINT',
  },
  {
    what: 'keys of another kind of source',
    secrets: KEYS,
    says: /has "AWS_ACCESS_KEY_ID"; for hf:\/\/ it may/,
  },
  {
    what: 'half of its keys',
    secrets: { AWS_ACCESS_KEY_ID: 'CANARY' },
    dataset: 's3://bucket/x/',
    says: 'nodePublishSecretRef: the Secret has no AWS_SECRET_ACCESS_KEY, which s3:// needs',
  },
  {
    what: 'a token of two lines',
    secrets: { token: 'CANARY\nCANARY' },
    says: 'nodePublishSecretRef: token of the Secret: expected printable ASCII characters',
  },
  { what: 'an empty token', secrets: { token: '\n' }, says: /token of the Secret: expected/ },
  {
    what: 'the name of a dataset',
    secrets: { token: 'CANARY' },
    dataset: 'flowers',
    says: /expected dataset: to be a URL such as hf:\/\/org\/model, found "flowers"/,
  },
  {
    what: 'a web server',
    secrets: { token: 'CANARY' },
    dataset: 'https://data.example/x.tar',
    says: /only hf:\/\/ and s3:\/\/ URLs are read with a Secret, not https:\/\/data\.example\/x\.tar/,
  },
  {
    what: 'a URL that its namespace may not name',
    secrets: { token: 'CANARY' },
    namespace: 'team-c',
    code: status.PERMISSION_DENIED,
    says: /namespace "team-c" may not name the source/,
  },
  {
    what: 'a server that dsc.yaml does not name',
    secrets: { token: 'CANARY', HF_ENDPOINT: 'http://169.254.169.254' },
    code: status.PERMISSION_DENIED,
    says: /the endpoints of declared datasets alone, not to http:\/\/169\.254\.169\.254/,
  },
  {
    what: 'a pod without a namespace',
    secrets: { token: 'CANARY' },
    dataset: 'hf://open/model',
    namespace: '',
    says: /kubelet names no namespace; CSIDriver needs podInfoOnMount/,
  },
])
  test(`a Secret with ${what} is refused, and opens nothing`, async (context) => {
    const { publish, shown, told, cache } = await makePlugin(context)
    const asked = { dataset, ...(namespace === undefined ? {} : { namespace }) }
    await assert.rejects(publish('pod', secrets, asked), (error: { code: number; details: string }) => {
      assert.equal(error.code, code, error.details)
      if (typeof says === 'string') assert.equal(error.details, says)
      else assert.match(error.details, says)
      return true
    })
    assert.doesNotMatch(told.join(), /CANARY/)
    assert.deepEqual([shown, await cache.record.listLeases({})], [[], []])
  })
