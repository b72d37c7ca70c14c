import assert from 'node:assert/strict'
import { test } from 'node:test'
import { POD } from '../../testing/csi-node.js'
import { ApiRefusal } from './api-server.js'
import { wakeKubelet } from './wake-kubelet.js'

async function wake(answer: () => void) {
  const asked: unknown[] = []
  const noted: string[] = []
  await wakeKubelet(POD, {
    api: {
      async patch(...words) {
        asked.push(words)
        answer()
      },
    },
    driver: 'dsc.io',
    note: (sentence) => noted.push(sentence),
  })
  return { asked, noted }
}

test('kubelet is woken by an annotation of that very pod', async (context) => {
  context.mock.timers.enable({ apis: ['Date'], now: 0 })
  const { asked, noted } = await wake(() => {})
  const annotations = { 'dsc.io/mounted': '1970-01-01T00:00:00.000Z' }
  assert.deepEqual(asked, [
    ['/api/v1/namespaces/team-a/pods/reader', 'merge-patch', { metadata: { uid: 'u-1', annotations } }],
  ])
  assert.deepEqual(noted, [])
})

for (const { error, noted } of [
  { error: new ApiRefusal(403, 'no such right'), noted: [] },
  { error: new ApiRefusal(409, 'another pod'), noted: [] },
  {
    error: new ApiRefusal(500, 'etcd'),
    noted: ['pod team-a/reader may start 15 s later: the API server answers 500: etcd'],
  },
])
  test(`an agent notes ${noted.length === 0 ? 'nothing' : 'why'} if the API server answers ${error.statusCode}`, async () => {
    const refuse = () => {
      throw error
    }
    assert.deepEqual((await wake(refuse)).noted, noted)
  })
