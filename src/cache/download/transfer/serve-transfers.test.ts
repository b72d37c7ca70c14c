import assert from 'node:assert/strict'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import type { FromJobThread, ToJobThread } from '../../../platform/job-threads.js'
import { fileEtag, openFileFetcher } from '../../../sources/file/file-fetcher.js'
import { temporaryDirectory } from '../../../testing/temporary-directory.js'
import { createEtagEvidence } from './etag-judge.js'
import { createFileTurns } from './file-turns.js'
import { serveTransfers } from './serve-transfers.js'
import type { TransferTask } from './transfer-task.js'
import type { FromWorker, ToWorker } from './worker-wire.js'

const WITHIN = { timeout: 60_000 }

test('what ends after a pause is told without a wait for what may end soon', WITHIN, async (context) => {
  const folder = await temporaryDirectory(context)
  for (const name of ['from', 'to']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'from/a'), 'a')
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }) // frozen timers: the time to gather results never ends
  context.after(() => mock.timers.reset())
  const { port1: port, port2: thread } = new MessageChannel()
  context.after(() => port.close())
  const { promise: told, resolve } = Promise.withResolvers<FromJobThread<unknown, FromWorker>>()
  port.on('message', resolve)
  serveTransfers(thread, { file: openFileFetcher })
  const post = (message: ToJobThread<TransferTask, ToWorker>) => port.postMessage(message)
  const setup = { scheme: 'file', location: join(folder, 'from'), connections: 1, stallTimeoutMs: 20_000 }
  const begin = {
    ...setup,
    bandwidth: undefined,
    etagEvidence: createEtagEvidence(),
    turns: createFileTurns(),
  }
  post({ kind: 'word', word: { kind: 'begin', setup: begin } })
  const object = {
    ...{ key: 'a', etag: fileEtag(statSync(join(folder, 'from/a'))), versionId: null },
    ...{ checksum: null, sizeBytes: 1, path: join(folder, 'to/a') },
  }
  post({ kind: 'jobs', jobs: [{ id: 1, job: { kind: 'whole', object, urgency: 'listed' } }] })
  const report = await told
  assert.equal(report.word?.kind, 'report')
  assert.deepEqual(
    report.ends.map((result) => ['value' in result, result.id]),
    [[true, 1]],
  )
})
