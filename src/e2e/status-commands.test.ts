import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { openSqliteRecord } from '../records/sqlite/record-store.js'
import { DSC } from '../testing/dsc-processes.js'
import { fillRecord } from '../testing/example-record.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const run = promisify(execFile)
let directory = ''

after(() => rm(directory, { recursive: true, force: true }))

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'dsc-test-'))
  await writeFile(
    join(directory, 'dsc.yaml'),
    'record: sqlite:record.db\nnode: gpu-01\ncache:\n  root: cache\n  maxDatasets: 12\ndatasets:\n  declared:\n    source: s3://bucket/declared/\n',
  )
  const record = await openSqliteRecord(join(directory, 'record.db'))
  await fillRecord(record, { copies: 10, nodes: 2, stagings: 1, nowMs: Date.now() })
  await record.leaseReady(
    {
      dataset: 'dataset-0002',
      node: 'gpu-02',
      lease: { task: 'gone', holder: { kind: 'ttl' }, expiresAtMs: 5 },
    },
    1,
  )
  await record.close()
})

async function dsc(...words: string[]): Promise<string> {
  return (await run(DSC[0]!, [...DSC.slice(1), ...words], { cwd: directory })).stdout
}

async function dscJson(...words: string[]): Promise<unknown> {
  return JSON.parse(await dsc(...words, '--json'))
}

test('status through a pipe is a table with the whole names', async () => {
  const text = await dsc('status')
  assert.match(text, /^NODE +DATASETS/)
  assert.match(text, /\ngpu-01 +6\/12 /)
  assert.match(text, /\ndataset-0004 +gpu-02 +ready +\S+ GiB +lock \+4/)
  assert.match(text, /\nwebdata-1 +gpu-01 .*43% +job-4800 +1 +s3:\/\/bucket\/webdata-1\//)
})

test('more than 200 lines are summed up by node and by dataset; --all lists every copy', async (context) => {
  const folder = await temporaryDirectory(context)
  await writeFile(join(folder, 'dsc.yaml'), 'record: sqlite:record.db\nnode: gpu-01\ncache:\n  root: cache\n')
  const record = await openSqliteRecord(join(folder, 'record.db'))
  await fillRecord(record, { copies: 250, nodes: 5, stagings: 1, nowMs: Date.now() })
  await record.close()
  const status = async (...words: string[]) =>
    (await run(DSC[0]!, [...DSC.slice(1), 'status', ...words], { cwd: folder })).stdout
  const text = await status()
  assert.ok(text.split('\n').length <= 200)
  assert.match(text, /\nDATASET +READY .*\ndataset-0\d+ +1 .* gpu-0\d +-\n/)
  assert.match(text, /\nSTAGING .*\nwebdata/)
  assert.match(text, /\n251 copies in all; --all lists each/)
  assert.equal((await status('--all')).match(/^dataset-\d+ .* (ready|evicting) /gm)?.length, 250)
})

test('status --json has every copy, and --node and --dataset narrow it', async () => {
  const status = (await dscJson('status')) as { copies: { dataset: string; node: string }[] }
  assert.equal(status.copies.length, 11)
  const one = (await dscJson('status', '--node', 'gpu-02', '--dataset', 'dataset-0002')) as typeof status
  assert.deepEqual(
    one.copies.map(({ dataset, node }) => [dataset, node]),
    [['dataset-0002', 'gpu-02']],
  )
})

test('leases lists holders, and --stale only those that no longer count', async () => {
  assert.match(await dsc('leases', '--dataset', 'dataset-0004'), /job-4704 +dataset-0004 +gpu-02 +use/)
  const { leases: stale } = (await dscJson('leases', '--stale')) as {
    leases: { task: string; staleReason: string }[]
  }
  assert.deepEqual(
    stale.map(({ task, staleReason }) => [task, staleReason]),
    [['gone', 'it has expired']],
  )
  const { leases: mine } = (await dscJson('leases', '--task', 'job-4704')) as { leases: { task: string }[] }
  assert.deepEqual(new Set(mine.map(({ task }) => task)), new Set(['job-4704']))
})

test('history lists events newest first, of one dataset if asked', async () => {
  const { events } = (await dscJson('history', 'dataset-0004')) as { events: { kind: string }[] }
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['locked', 'adopted'],
  )
  assert.match(await dsc('history', '--limit', '3'), /^TIME +WHAT/)
  await assert.rejects(dsc('history', '--limit', '0'), {
    code: 2,
    stderr: /expected a whole number of 1 or more/,
  })
})

test('why says what keeps a copy, and who would go next', async () => {
  const text = await dsc('why', 'dataset-0004')
  assert.match(text, /dataset-0004 on gpu-02: ready/)
  assert.match(text, /here because +adopted/)
  assert.match(text, /kept by +4 leases\n( +job-.*\n){4} +kept by +a lock by ops/)
  assert.match(text, /NEXT TO GO/)
})

test('why says what was refused, and knows a dataset that was only declared', async () => {
  assert.match(
    await dsc('why', 'laion-huge'),
    /has no copy\.\n\nlast refused +\d+m ago on gpu-01 for job-4712: needs 2\.1 TiB/,
  )
  assert.match(await dsc('why', 'declared'), /has no copy\.\n\nNo events in the history/)
  await assert.rejects(dsc('why', 'nobody'), { code: 4, stderr: /no dataset is called nobody/ })
})
