// Publishes a dataset that is ready, as kubelet would, and takes it back: node warm-publish.mjs CHECKOUT POD_UID COUNT AT_ONCE
// Prints how long the plugin takes to publish it, in ms. Runs in the mount namespace of the node.
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'

const [checkout, uid, count, atOnce] = process.argv.slice(2)
const { openCsiClient } = await import(join(checkout, 'dist/testing/csi-client.js'))
const client = openCsiClient('/var/lib/kubelet/plugins/dsc.io/csi.sock')
const times = []

async function publishOnce(name) {
  const folder = `/var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~csi/${name}`
  const volume = { volumeId: `csi-${name}`, targetPath: `${folder}/mount` }
  mkdirSync(folder, { recursive: true })
  const began = performance.now()
  await client.call('Node', 'NodePublishVolume', {
    ...volume,
    volumeCapability: { mount: {}, accessMode: { mode: 'SINGLE_NODE_READER_ONLY' } },
    volumeContext: {
      dataset: 'birds',
      'csi.storage.k8s.io/pod.uid': uid,
      'csi.storage.k8s.io/pod.namespace': 'team-a',
      'csi.storage.k8s.io/pod.name': 'reader',
    },
    readonly: true,
  })
  times.push(performance.now() - began)
  await client.call('Node', 'NodeUnpublishVolume', volume)
  rmdirSync(folder)
}

const perLane = Math.ceil(count / atOnce)
await Promise.all(
  Array.from({ length: atOnce }, async (_, lane) => {
    for (let round = 0; round < perLane; round++) await publishOnce(`warm${lane}`)
  }),
)
client.close()
times.sort((one, other) => one - other)
const at = (ratio) => times[Math.ceil(times.length * ratio) - 1].toFixed(1)
console.log(
  `${times.length} warm publishes, ${atOnce} at once: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, most ${at(1)} ms`,
)
