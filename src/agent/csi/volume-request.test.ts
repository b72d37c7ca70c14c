import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PublishMessage, parseVolumeRequest } from './volume-request.js'

const MESSAGE: PublishMessage = {
  volumeId: 'csi-1',
  targetPath: '/pods/u/volumes/kubernetes.io~csi/data/mount',
  volumeCapability: { mount: {} },
  volumeContext: {
    'csi.storage.k8s.io/ephemeral': 'true',
    'csi.storage.k8s.io/pod.uid': 'u-1',
    'csi.storage.k8s.io/pod.name': 'reader',
    'csi.storage.k8s.io/pod.namespace': 'team-a',
    dataset: 'flowers',
  },
  secrets: { HF_TOKEN: 't' },
}

test('kubelet says for which pod a volume is', () => {
  assert.deepEqual(parseVolumeRequest(MESSAGE), {
    volumeId: 'csi-1',
    target: MESSAGE.targetPath,
    dataset: 'flowers',
    pod: { uid: 'u-1', namespace: 'team-a', name: 'reader' },
    secrets: { HF_TOKEN: 't' },
  })
  const { pod } = parseVolumeRequest({ ...MESSAGE, volumeContext: { dataset: 'flowers' } })
  assert.deepEqual(pod, { uid: 'csi-1', namespace: '', name: 'csi-1' })
})

for (const [what, changes, message] of [
  ['a block volume', { volumeCapability: { block: {} } }, 'volumeMode: expected Filesystem, found Block'],
  [
    'no dataset',
    { volumeContext: {} },
    'volumeAttributes.dataset: expected the name of a dataset, found none',
  ],
  [
    'a misspelt attribute',
    { volumeContext: { datset: 'flowers' } },
    'volumeAttributes: expected dataset, found "datset"',
  ],
  [
    'a path upwards',
    { targetPath: '/pods/../etc' },
    'target_path: expected an absolute path, found "/pods/../etc"',
  ],
  ['a relative path', { targetPath: 'pods/u' }, 'target_path: expected an absolute path, found "pods/u"'],
  [
    'an invalid uid',
    { volumeContext: { ...MESSAGE.volumeContext, 'csi.storage.k8s.io/pod.uid': '../x' } },
    'csi.storage.k8s.io/pod.uid: expected a uid, found "../x"',
  ],
] as const)
  test(`a volume with ${what} is refused`, () => {
    assert.throws(() => parseVolumeRequest({ ...MESSAGE, ...changes }), { code: 'USAGE', message })
  })
