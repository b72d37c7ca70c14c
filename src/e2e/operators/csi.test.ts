import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { readMountTable } from '../../platform/mount-table.js'
import { openCsiClient } from '../../testing/csi-client.js'
import { needs, needsRoot, needsThat } from '../../testing/needs.js'
import { ADA, findObstacle } from '../../testing/several-users.js'
import { makeWorld } from '../../testing/world.js'

const canMount = spawnSync('unshare', ['--mount', 'true']).status === 0
const skip = needsRoot || needs('mount', 'mount') || (!canMount && 'mount is not allowed here')
const SANITY = join(
  process.env.DSC_TEST_CSI_SANITY ??
    join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'dsc-test/csi-sanity'),
  'csi-sanity',
)

/** A node with kubelet's folders but without kubelet, two datasets, and an agent that mounts them. */
async function makeNode(context: TestContext, owner?: { readonly uid: number; readonly gid: number }) {
  let kubelet = '/nowhere'
  context.after(() => {
    // Before the folder of the test is removed, which would find copies in it.
    for (const { path } of readMountTable()) if (path.startsWith(kubelet)) spawnSync('umount', [path])
  })
  const world = await makeWorld(context, {})
  kubelet = join(world.directory, 'kubelet')
  for (const [name, bytes] of Object.entries({ flowers: 10, large: 1.5 * 1024 * 1024 })) {
    mkdirSync(join(world.directory, name))
    writeFileSync(join(world.directory, name, 'a.bin'), Buffer.alloc(bytes, 1))
  }
  await world.configure({
    agent: { listen: '127.0.0.1:0', csi: { kubelet } },
    stage: { bandwidthLimit: '512KiB/s' },
    datasets: {
      flowers: { source: './flowers/' },
      large: { source: './large/', namespaces: ['team-a'] },
    },
  })
  if (owner) {
    chmodSync(world.directory, 0o755)
    for (const name of ['plugins', 'plugins_registry']) mkdirSync(join(kubelet, name), { recursive: true })
    mkdirSync(world.root)
    chownSync(world.root, owner.uid, owner.gid)
  }
  const environment = owner && { DSC_RECORD: join(world.root, 'record.db') }
  const socket = join(kubelet, 'plugins/dsc.io/csi.sock')
  const start = async () => {
    const agent = world.start(['agent', '--csi'], environment && { environment })
    const [said] = await Promise.race([
      once(agent.process.stdout!, 'data'),
      agent.finished.then(({ stderr }) => assert.fail(stderr)),
    ])
    assert.match(String(said), /^kubelet: dsc\.io at /m)
    const client = openCsiClient(socket)
    context.after(() => client.close())
    return { agent, client }
  }
  const targetOf = (volume: string) => {
    const folder = join(kubelet, 'pods/u-1/volumes/kubernetes.io~csi', volume)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'vol_data.json'), '{"driverName":"dsc.io"}') // as kubelet does
    return join(folder, 'mount')
  }
  const publish = (dataset: string, namespace = 'team-a') => ({
    volumeId: `csi-${dataset}`,
    targetPath: targetOf(dataset),
    volumeCapability: { mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } },
    readonly: true,
    volumeContext: {
      dataset,
      'csi.storage.k8s.io/pod.uid': 'u-1',
      'csi.storage.k8s.io/pod.name': 'reader',
      'csi.storage.k8s.io/pod.namespace': namespace,
    },
  })
  const leases = () => world.query<{ task: string }>('SELECT task FROM leases').map(({ task }) => task)
  return { world, kubelet, socket, start, targetOf, publish, leases }
}

test('a pod reads its dataset through the plugin, which holds calls and outlives kill -9', {
  skip,
}, async (context) => {
  const { start, publish, targetOf, leases, kubelet } = await makeNode(context)
  const { agent, client } = await start()
  const node = (method: string, request: object, deadlineMs?: number) =>
    client.call('Node', method, request, deadlineMs)

  await node('NodePublishVolume', publish('flowers'))
  assert.equal(readFileSync(join(targetOf('flowers'), 'a.bin')).length, 10)
  assert.throws(() => writeFileSync(join(targetOf('flowers'), 'b'), ''), { code: 'EROFS' })
  const [mount] = readMountTable().filter(({ path }) => path === targetOf('flowers'))
  assert.equal(mount?.isReadOnly, true)

  await assert.rejects(node('NodePublishVolume', publish('large', 'team-b')), {
    code: status.PERMISSION_DENIED,
  })
  await assert.rejects(node('NodePublishVolume', publish('flwers')), {
    code: status.NOT_FOUND,
    details: 'no dataset is called "flwers"; try: dataset: flowers',
  })
  await assert.rejects(node('NodePublishVolume', publish('large'), 3100), {
    code: status.ABORTED,
    details: /^large: .*; it goes on$/,
  })
  await node('NodePublishVolume', publish('large'))
  assert.deepEqual(leases(), ['pod:team-a/reader', 'pod:team-a/reader'])

  agent.process.kill('SIGKILL')
  await once(agent.process, 'exit')
  assert.equal(readFileSync(join(targetOf('flowers'), 'a.bin')).length, 10)
  const { client: again } = await start()
  await again.call('Node', 'NodePublishVolume', publish('flowers'))
  assert.equal(readMountTable().filter(({ path }) => path.startsWith(kubelet)).length, 2, 'mounted once each')
  for (const volumeId of ['flowers', 'large', 'never-seen'])
    await again.call('Node', 'NodeUnpublishVolume', { volumeId, targetPath: targetOf(volumeId) })
  assert.deepEqual(leases(), [])
  assert.equal(existsSync(targetOf('flowers')), false)
  assert.deepEqual(readdirSync(join(kubelet, 'plugins/dsc.io/volumes')), [])
})

test('the agent of a cache of another user is that user, and a process beside it mounts as root', {
  skip: skip || findObstacle(),
}, async (context) => {
  const { start, publish, targetOf } = await makeNode(context, ADA)
  const { agent, client } = await start()
  const statusOf = (pid: number | string) => readFileSync(`/proc/${pid}/status`, 'utf8')
  assert.match(statusOf(agent.process.pid!), new RegExp(`^Uid:(\\t${ADA.uid}){4}$`, 'm'))
  const [mounter] = readFileSync(
    `/proc/${agent.process.pid}/task/${agent.process.pid}/children`,
    'utf8',
  ).split(' ')
  assert.match(statusOf(mounter!), /^Uid:(\t0){4}$/m)
  await client.call('Node', 'NodePublishVolume', publish('flowers'))
  assert.equal(readFileSync(join(targetOf('flowers'), 'a.bin')).length, 10)
  await client.call('Node', 'NodeUnpublishVolume', { volumeId: 'x', targetPath: targetOf('flowers') })
  assert.equal(existsSync(targetOf('flowers')), false)
  process.kill(Number(mounter), 'SIGKILL')
  await agent.finished // nobody could be given a volume
})

test('csi-sanity finds nothing wrong', {
  skip: skip || needsThat(() => existsSync(SANITY), 'csi-sanity (scripts/csi-sanity.sh builds it)'),
}, async (context) => {
  const { world, start, socket, targetOf } = await makeNode(context)
  await start()
  const parameters = join(world.directory, 'parameters.yaml')
  writeFileSync(parameters, 'dataset: flowers\n')
  const words = ['-csi.endpoint', `unix://${socket}`, '-csi.testvolumeparameters', parameters]
  const folder = join(targetOf('other'), '../../sanity') // it wants to make this one itself
  const run = spawnSync(SANITY, [...words, '-csi.mountdir', folder, '-ginkgo.no-color'], { encoding: 'utf8' })
  assert.equal(run.status, 0, run.stdout.slice(-3000))
  assert.match(run.stdout, /(3[2-9]|[4-9]\d) Passed \| 0 Failed/)
})
