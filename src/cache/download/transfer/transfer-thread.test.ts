import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BackgroundThread } from '../../../platform/background-thread.js'
import { TransferThread } from './transfer-thread.js'
import type { ToWorker } from './worker-wire.js'

test('what is hurried goes to a thread after the tasks that are about to go there', async (t) => {
  const posted: string[] = []
  t.mock.method(BackgroundThread.prototype, 'post', ({ kind }: ToWorker) => posted.push(kind))
  const thread = new TransferThread()
  t.after(() => thread.dismiss())
  thread.hurry('a', undefined)
  assert.deepEqual(posted, [], 'nothing was asked for yet')
  const object = { key: 'a', etag: null, versionId: null, sizeBytes: 1, path: '/nowhere/a' }
  void thread.run({ kind: 'inspect', object })
  thread.hurry('a', undefined)
  await Promise.resolve()
  assert.deepEqual(posted, ['tasks', 'hurry'])
})
