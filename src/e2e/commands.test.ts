import assert from 'node:assert/strict'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { succeeds } from '../testing/dsc-processes.js'
import { startFlowerStore } from '../testing/flower-store.js'
import { makeWorld, s3Dataset, writeTree } from '../testing/world.js'

const { server, bucket, datasets } = await startFlowerStore()
after(() => server.close())

test('prepare stages from S3 and prints the path and nothing else on stdout', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const { stdout } = await succeeds(world.dsc('prepare', 'flowers', '--task', 'job-1'))
  const path = stdout.trimEnd()
  assert.deepEqual(stdout.split('\n'), [path, ''])
  assert.deepEqual((await readdir(path, { recursive: true })).toSorted(), [
    'labels.csv',
    'rose',
    'rose/1.jpg',
    'rose/2.jpg',
  ])
  assert.equal(await readFile(join(path, 'rose/2.jpg'), 'utf8'), 'another rose')
  assert.deepEqual(world.query('SELECT * FROM cache_record'), [
    { dataset: 'flowers', node: 'node-a', last_task: 'job-1', lock_state: 'unlocked', reference_count: 1 },
  ])
})

test('prepare --json has the fields that scripts rely on, and a ready copy is used without asking the source', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const first = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  assert.deepEqual(
    [first.dataset, first.node, first.origin, first.files, first.contentBytes],
    ['flowers', 'node-a', 's3', 3, 24],
  )
  assert.match(first.version, /^[0-9a-f]{64}$/)
  assert.equal(first.lease.task, 'a')
  await world.configure({ datasets: { flowers: s3Dataset(bucket, 'flowers/', 'http://127.0.0.1:1') } })
  const again = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  assert.deepEqual(
    [again.origin, again.path, again.lease.leaseId],
    ['local', first.path, first.lease.leaseId],
  )
})

test('prepare takes a source URL as it is and remembers it under a name', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(join(world.directory, 'scans'), { 'a/1.bin': 'one', 'b.bin': 'two' })
  const source = `${pathToFileURL(join(world.directory, 'scans'))}/`
  const { stdout } = await succeeds(world.dsc('prepare', source, '--task', 'a'))
  assert.equal(await readFile(join(stdout.trimEnd(), 'a/1.bin'), 'utf8'), 'one')
  const [listed] = JSON.parse((await world.dsc('dataset', 'ls', '--json')).stdout).datasets
  assert.equal(listed.source, source)
  assert.equal((await world.dsc('verify', listed.dataset)).code, 0)
})

test('a folder is a source by its path, also of a name that is added', async (context) => {
  const world = await makeWorld(context, { server })
  await writeTree(join(world.directory, 'scans'), { 'b.bin': 'two' })
  await succeeds(world.dsc('dataset', 'add', 'mine', './scans'))
  const { stdout } = await world.dsc('prepare', 'mine', '--task', 'job-1')
  assert.equal(await readFile(join(stdout.trimEnd(), 'b.bin'), 'utf8'), 'two')
  assert.match(
    (await world.dsc('release', 'scans')).stderr,
    /is called scans\n {2}try: dsc release \.\/scans\n/,
  )
})

test('release ends the lease of its task only, and twice is no error', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await world.dsc('prepare', 'flowers', '--task', 'b')
  const first = await world.dsc('release', 'flowers', '--task', 'a', '--json')
  const second = await world.dsc('release', 'flowers', '--task', 'a', '--json')
  assert.deepEqual([JSON.parse(first.stdout).released, JSON.parse(second.stdout).released], [1, 0])
  assert.equal(second.code, 0)
  assert.deepEqual(world.query('SELECT reference_count FROM cache_record'), [{ reference_count: 1 }])
})

test('a Slurm job holds its lease by job id, a plain call by the calling process', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await world.start(['prepare', 'flowers'], { environment: { SLURM_JOB_ID: '42' } }).finished
  await world.dsc('prepare', 'flowers')
  const holders = world
    .query<{ holder: string; task: string }>('SELECT task, holder FROM leases ORDER BY created_at_ms')
    .map(({ task, holder }) => [task, JSON.parse(holder)] as const)
  const [[task, job], [, caller]] = [holders[0]!, holders[1]!]
  assert.deepEqual([task, job.kind, job.jobId], ['slurm:42', 'slurm', '42'])
  assert.deepEqual([caller.kind, caller.pid], ['process', process.pid])
})

test('a full policy evicts the least recently used idle copy, and a refusal names need, have and holders', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets(), cache: { maxDatasets: 1 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  const refused = await world.dsc('prepare', 'birds', '--task', 'b')
  assert.equal(refused.code, 5)
  assert.equal(refused.stdout, '')
  assert.match(
    refused.stderr,
    /no room for birds on node node-a: it needs .*; maxDatasets allows 1 and 1 are taken/,
  )
  assert.match(refused.stderr, /evictable: nothing/)
  assert.match(refused.stderr, /held: flowers .*, leased by a \(until /)
  assert.match(refused.stderr, /nothing was deleted/)
  await world.dsc('release', 'flowers', '--task', 'a')
  const plan = JSON.parse((await world.dsc('prepare', 'birds', '--plan', '--json')).stdout)
  assert.equal(plan.outcome, 'evicts')
  assert.deepEqual(
    plan.evictions.map(({ dataset, reason }: { dataset: string; reason: string }) => [dataset, reason]),
    [['flowers', 'least recently used']],
  )
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 1)
  const admitted = await succeeds(world.dsc('prepare', 'birds', '--task', 'b'))
  assert.match(admitted.stderr, /evicted flowers/)
  assert.deepEqual(world.query('SELECT dataset FROM cache_record'), [{ dataset: 'birds' }])
  assert.deepEqual(await readdir(join(world.root, 'copies', 'flowers')), [])
  assert.deepEqual(await readdir(join(world.root, 'trash')), [])
})

test('refresh fetches only what changed and keeps the old version until it is idle', async (context) => {
  const world = await makeWorld(context, { datasets: {} })
  const source = join(world.directory, 'src')
  await writeTree(source, { 'same.bin': 'x'.repeat(100_000), 'changed.txt': 'old', 'gone.txt': 'bye' })
  await world.configure({ datasets: { tree: { source: `${pathToFileURL(source)}/` } } })
  const before = JSON.parse((await world.dsc('prepare', 'tree', '--task', 'a', '--json')).stdout)
  const unchanged = JSON.parse(
    (await world.dsc('prepare', 'tree', '--task', 'a', '--refresh', '--json')).stdout,
  )
  assert.deepEqual([unchanged.version, unchanged.path], [before.version, before.path])
  await writeTree(source, { 'changed.txt': 'newer' })
  await rm(join(source, 'gone.txt'))
  assert.equal(
    JSON.parse((await world.dsc('prepare', 'tree', '--task', 'b', '--json')).stdout).path,
    before.path,
  )
  const after = JSON.parse((await world.dsc('prepare', 'tree', '--task', 'b', '--refresh', '--json')).stdout)
  assert.notEqual(after.version, before.version)
  assert.deepEqual([after.downloaded.fetchedBytes, after.downloaded.reusedBytes], [5, 100_000])
  assert.equal(await readFile(join(before.path, 'changed.txt'), 'utf8'), 'old')
  assert.deepEqual((await readdir(after.path)).toSorted(), ['changed.txt', 'same.bin'])
  await world.dsc('cleanup')
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 2, 'task a and b still hold the old version')
  await world.dsc('release', '--all', '--task', 'a')
  await world.dsc('release', '--all', '--task', 'b')
  const cleaned = await world.dsc('cleanup')
  assert.match(cleaned.stdout, /evicted tree .*replaced by a newer version/)
  assert.deepEqual(world.query('SELECT version FROM copies'), [{ version: after.version }])
})

test('a changed definition stages anew and leases only that; who reads the old copy keeps it', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await world.dsc('prepare', 'flowers', '--task', 'before')
  const narrowed = { ...s3Dataset(bucket, 'flowers/', server.endpoint), include: ['**/*.jpg'] }
  await world.configure({ datasets: { flowers: narrowed } })
  const { stdout } = await world.dsc('prepare', 'flowers', '--task', 'after')
  assert.deepEqual(await readdir(stdout.trimEnd()), ['rose'])
  const again = await world.dsc('prepare', 'flowers', '--task', 'after')
  assert.equal(again.stdout, stdout)
  assert.deepEqual(
    world.query(
      'SELECT files, task FROM copies JOIN leases ON leases.copy_id = copies.copy_id ORDER BY files',
    ),
    [
      { files: 2, task: 'after' },
      { files: 3, task: 'before' },
    ],
  )
})

test('run sets the paths, returns the exit code of the command and releases', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const script = 'cat "$DSC_DATASET/labels.csv"; ls "$DSC_DATASET_BIRDS"; exit 7'
  const { code, stdout, stderr } = await world.dsc('run', 'flowers', 'birds', '--', 'sh', '-c', script)
  assert.equal(code, 7, stderr)
  assert.equal(stdout, 'rose,11.wav\n')
  assert.deepEqual(world.query('SELECT * FROM leases'), [])
  const missing = await world.dsc('run', 'flowers', '--', 'no-such-command-here')
  assert.equal(missing.code, 127)
  assert.match(missing.stderr, /cannot run no-such-command-here/)
})

test('run tells a file that cannot be run from a command that is not there', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await writeTree(world.directory, { 'plain.txt': 'no program' })
  for (const { command, exitCode, message } of [
    { command: join(world.directory, 'plain.txt'), exitCode: 126, message: /it is not an executable file/ },
    { command: 'no-such-command', exitCode: 127, message: /no such command/ },
  ]) {
    const { code, stderr } = await world.dsc('run', 'flowers', '--', command)
    assert.equal(code, exitCode)
    assert.match(stderr, message)
  }
})

test('run returns the exit code of the command also when the record cannot be used any more', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const spoil = `new (require('node:sqlite').DatabaseSync)('${world.recordPath}').exec('DROP TABLE leases'); process.exit(7)`
  const { code, stderr } = await world.dsc('run', 'flowers', '--', process.execPath, '-e', spoil)
  assert.equal(code, 7, stderr)
  assert.match(stderr, /dsc: (the service failed: )?no such table/)
})

test('64 processes at once never meet a busy record', async (context) => {
  const world = await makeWorld(context, { datasets: {} })
  const source = join(world.directory, 'src')
  await writeTree(source, { 'a.txt': 'a' })
  await world.configure({ datasets: { tree: { source: `${pathToFileURL(source)}/` } } })
  const tasks = Array.from({ length: 32 }, (_, index) => `job-${index}`)
  const prepared = tasks.map((task) => world.dsc('prepare', 'tree', '--task', task))
  const locked = tasks.map((task) => world.dsc('release', 'tree', '--task', `${task}-other`))
  for (const { code, stderr } of await Promise.all([...prepared, ...locked])) assert.equal(code, 0, stderr)
  assert.deepEqual(world.query('SELECT reference_count FROM cache_record'), [{ reference_count: 32 }])
})

test('self says what runs, and --version --json says the same', async (context) => {
  const world = await makeWorld(context, {})
  const { stdout } = await world.dsc('self', '--json')
  assert.equal((await world.dsc('--version', '--json')).stdout, stdout)
  const self = JSON.parse(stdout)
  assert.equal(`${self.version}\n`, (await world.dsc('--version')).stdout)
  assert.match(self.sqlite, /^3\.\d+\.\d+$/)
  assert.equal(JSON.parse(await readFile(join(self.folder, 'package.json'), 'utf8')).version, self.version)
  await world.dsc('status')
  assert.deepEqual(world.query('SELECT max(version) AS version FROM dsc_schema'), [
    { version: self.recordSchema },
  ])
  assert.match((await world.dsc('self')).stdout, new RegExp(`^record schema +${self.recordSchema}$`, 'm'))
})
