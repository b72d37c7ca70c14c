import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BackgroundThread } from '../../../platform/background-thread.js'
import type { ToJobThread } from '../../../platform/job-threads.js'
import type { TransferTask } from './transfer-task.js'
import { TransferThread } from './transfer-thread.js'
import type { ToWorker } from './worker-wire.js'

test('what is hurried goes to a thread after the tasks that are about to go there', async (t) => {
  const posted: string[] = []
  t.mock.method(BackgroundThread.prototype, 'post', (message: ToJobThread<TransferTask, ToWorker>) =>
    posted.push(message.kind === 'word' ? message.word.kind : message.kind),
  )
  const thread = new TransferThread()
  thread.hurry('a', undefined)
  assert.deepEqual(posted, [], 'nothing was asked for yet')
  const object = { key: 'a', etag: null, versionId: null, sizeBytes: 1, path: '/nowhere/a' }
  const failed = assert.rejects(thread.run({ kind: 'inspect', object }), /stopped/)
  thread.hurry('a', undefined)
  await Promise.resolve()
  assert.deepEqual(posted, ['jobs', 'hurry'])
  await thread.dismiss()
  await failed
})
