import assert from 'node:assert/strict'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type S3Server, startS3Server } from '../testing/s3-server.js'
import { makeWorld, s3Dataset, writeTree } from './world.js'

let server: S3Server
let bucket: string

before(async () => {
  server = await startS3Server()
  bucket = await server.makeBucket()
  for (const [key, body] of Object.entries({
    'flowers/rose/1.jpg': 'a rose',
    'flowers/rose/2.jpg': 'another rose',
    'flowers/labels.csv': 'rose,1',
    'birds/1.wav': 'tweet',
  })) {
    await server.putObject(bucket, key, body)
  }
})
after(() => server.close())

const datasets = () => ({
  flowers: s3Dataset(bucket, 'flowers/', server.endpoint),
  birds: s3Dataset(bucket, 'birds/', server.endpoint),
})

test('prepare stages from S3 and prints the path and nothing else on stdout', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const { code, stdout, stderr } = await world.dsc('prepare', 'flowers', '--task', 'job-1')
  assert.equal(code, 0, stderr)
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
    [first.dataset, first.node, first.origin, first.files, first.bytes],
    ['flowers', 'node-a', 's3', 3, 24],
  )
  assert.match(first.version, /^[0-9a-f]{64}$/)
  assert.equal(first.lease.task, 'a')
  await world.configure({ datasets: { flowers: s3Dataset(bucket, 'flowers/', 'http://127.0.0.1:1') } })
  const again = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  assert.deepEqual([again.origin, again.path, again.lease.id], ['local', first.path, first.lease.id])
})

test('prepare takes a source URL as it is and remembers it under a name', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(join(world.directory, 'scans'), { 'a/1.bin': 'one', 'b.bin': 'two' })
  const source = `${pathToFileURL(join(world.directory, 'scans'))}/`
  const { code, stdout, stderr } = await world.dsc('prepare', source, '--task', 'a')
  assert.equal(code, 0, stderr)
  assert.equal(await readFile(join(stdout.trimEnd(), 'a/1.bin'), 'utf8'), 'one')
  const listed = JSON.parse((await world.dsc('dataset', 'ls', '--json')).stdout)
  assert.equal(listed[0].source, source)
  assert.equal((await world.dsc('verify', listed[0].name)).code, 0)
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
    .map(({ task, holder }) => [task, JSON.parse(holder)])
  assert.deepEqual(holders[0], ['slurm:42', { kind: 'slurm', jobId: '42' }])
  assert.equal(holders[1]?.[1].kind, 'process')
  assert.equal(holders[1]?.[1].pid, process.pid)
})

test('a full policy evicts the least recently used idle copy, and a refusal names need, have and holders', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets(), cache: { maxDatasets: 1 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  const refused = await world.dsc('prepare', 'birds', '--task', 'b')
  assert.equal(refused.code, 12)
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
  const admitted = await world.dsc('prepare', 'birds', '--task', 'b')
  assert.equal(admitted.code, 0, admitted.stderr)
  assert.match(admitted.stderr, /evicted flowers/)
  assert.deepEqual(world.query('SELECT dataset FROM cache_record'), [{ dataset: 'birds' }])
  assert.deepEqual(await readdir(join(world.root, 'copies', 'flowers')), [])
  assert.deepEqual(await readdir(join(world.root, 'trash')), [])
})

test('lock keeps a copy from eviction and from evict, unlock lets it go', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets(), cache: { maxDatasets: 1 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await world.dsc('release', 'flowers', '--task', 'a')
  assert.equal((await world.dsc('lock', 'flowers', '--reason', 'deadline')).code, 0)
  const refused = await world.dsc('prepare', 'birds', '--task', 'b')
  assert.equal(refused.code, 12)
  assert.match(refused.stderr, /locked by .*: deadline/)
  assert.match(refused.stderr, /try: dsc unlock flowers/)
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 19)
  assert.equal((await world.dsc('unlock', 'flowers')).code, 0)
  assert.equal((await world.dsc('evict', 'flowers')).code, 28, 'without a terminal nobody can agree')
  assert.equal((await world.dsc('evict', 'flowers', '--dry-run')).code, 0)
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 1)
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 0)
  assert.equal(world.query('SELECT 1 FROM copies').length, 0)
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
  assert.equal(missing.code, 2)
  assert.match(missing.stderr, /cannot run no-such-command-here/)
})

test('run tells a file that cannot be run from a command that is not there', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  for (const { command, message } of [
    { command: join(world.directory, 'dsc.yaml'), message: /it is not an executable file/ },
    { command: 'no-such-command', message: /no such command/ },
  ]) {
    const { code, stderr } = await world.dsc('run', 'flowers', '--', command)
    assert.equal(code, 2)
    assert.match(stderr, message)
  }
})

test('run returns the exit code of the command also when the record cannot be used any more', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const spoil = `new (require('node:sqlite').DatabaseSync)('${world.recordPath}').exec('DROP TABLE leases'); process.exit(7)`
  const { code, stderr } = await world.dsc('run', 'flowers', '--', process.execPath, '-e', spoil)
  assert.equal(code, 7, stderr)
  assert.match(stderr, /dsc: no such table/)
})

test('adopt puts folders into the record where they lie, locked until a source is known', async (context) => {
  const world = await makeWorld(context, { server, datasets: {} })
  const old = join(world.directory, 'old')
  await writeTree(old, { 'cats/1.txt': 'meow', 'dogs/1.txt': 'woof', 'flowers/labels.csv': 'rose,1' })
  const listed = await world.dsc('adopt', `${old}/*`, '--dry-run')
  assert.match(listed.stdout, /cats\s+as cats\n.*dogs\s+as dogs/)
  assert.equal((await world.dsc('adopt', `${old}/*`)).code, 0)
  assert.deepEqual(world.query('SELECT dataset, lock_state FROM cache_record ORDER BY dataset'), [
    { dataset: 'cats', lock_state: 'locked' },
    { dataset: 'dogs', lock_state: 'locked' },
    { dataset: 'flowers', lock_state: 'locked' },
  ])
  await world.dsc('unlock', 'cats')
  assert.equal((await world.dsc('evict', 'cats', '--yes')).code, 19, 'no source: nobody could fetch it again')
  assert.equal(await readFile(join(old, 'cats/1.txt'), 'utf8'), 'meow')
  assert.equal((await world.dsc('verify', 'dogs')).code, 0)
  const wrong = await world.dsc(
    'adopt',
    join(old, 'flowers'),
    '--source',
    `s3://${bucket}/flowers/`,
    '--endpoint',
    server.endpoint,
    '--path-style',
  )
  assert.equal(wrong.code, 20)
  assert.match(wrong.stderr, /is not what its source holds: rose\/1.jpg is missing/)
  await writeTree(old, { 'flowers/rose/1.jpg': 'a rose', 'flowers/rose/2.jpg': 'another rose' })
  const right = await world.dsc(
    'adopt',
    join(old, 'flowers'),
    '--source',
    `s3://${bucket}/flowers/`,
    '--endpoint',
    server.endpoint,
    '--path-style',
  )
  assert.equal(right.code, 0, right.stderr)
  const prepared = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  assert.deepEqual([prepared.path, prepared.origin], [join(old, 'flowers'), 'local'])
})

test('cleanup brings a copy back into a record that was lost, and forgets a copy that was deleted by hand', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const { path } = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  for (const suffix of ['', '-wal', '-shm']) await rm(world.recordPath + suffix, { force: true })
  const dry = await world.dsc('cleanup', '--dry-run')
  assert.match(dry.stdout, /would put into the record .*flowers/)
  assert.equal(world.query('SELECT 1 FROM copies').length, 0)
  await world.dsc('cleanup')
  const again = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  assert.deepEqual([again.path, again.origin], [path, 'local'])
  await rm(join(path, '..'), { recursive: true })
  const forgot = await world.dsc('cleanup')
  assert.match(forgot.stdout, /forgot flowers/)
  assert.equal(world.query('SELECT 1 FROM copies').length, 0)
  const fresh = await world.dsc('prepare', 'flowers', '--task', 'a')
  assert.equal(fresh.code, 0, fresh.stderr)
  assert.deepEqual((await world.dsc('cleanup')).stdout, 'nothing to clean up\n')
})

test('dsc without a verb shows its help and says what is missing', async (context) => {
  const world = await makeWorld(context, { server })
  const { code, stdout, stderr } = await world.dsc()
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^Usage: dsc/)
  assert.match(stderr, /dsc: expected a command after dsc, found none\n/)
})

test('a result that cannot be written is told without a stack trace', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  const dsc = `"${process.execPath}" "${fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))}"`
  const { code, stdout } = await world.dsc(
    'run',
    'flowers',
    '--',
    'sh',
    '-c',
    `${dsc} status 2>&1 >/dev/full`,
  )
  assert.equal(code, 13, stdout)
  assert.match(stdout, /^dsc: cannot write to stdout \(ENOSPC\)\n$/)
})

test('a cache root whose disk is not mounted is refused instead of filled anew', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await rm(world.root, { recursive: true })
  const refused = await world.dsc('prepare', 'birds', '--task', 'a')
  assert.equal(refused.code, 25)
  assert.match(refused.stderr, /Is its disk mounted\?/)
})

for (const { words, code, message } of [
  {
    words: ['prepare', 'flowrs'],
    code: 5,
    message: /no dataset is called flowrs\n {2}try: dsc prepare flowers/,
  },
  { words: ['prepare', 'ftp://x/y'], code: 2, message: /expected/ },
  { words: ['prepare'], code: 2, message: /missing required argument/ },
  { words: ['prepare', 'flowers', '--ttl', 'soon'], code: 2, message: /soon/ },
  { words: ['evict'], code: 2, message: /expected either datasets or --free/ },
  { words: ['evict', 'flowers', '--yes'], code: 6, message: /flowers has no copy on node node-a/ },
  { words: ['release'], code: 2, message: /nothing to release/ },
  { words: ['dataset', 'add', '../evil', 's3://b/'], code: 2, message: /expected/ },
  { words: ['dataset', 'add', 'x'], code: 2, message: /try: dsc dataset add --help/ },
  { words: ['dataset', 'add', 'x', 's3://bucket/', '--endpoint', '127.0.0.1:9'], code: 2, message: /a URL/ },
  { words: ['prepare', './photos'], code: 5, message: /try: dsc prepare file:\/\/\/.*\/photos\/ / },
  { words: ['record', 'migrate', 'nowhere.db', 'new.db'], code: 7, message: /there is no record at/ },
  {
    words: ['params', 'serve', '--mode', 'async', '--workers', '1', '--checkpoint', '/dev/null/x'],
    code: 2,
    message: /cannot use the folder \/dev\/null\/x \(ENOTDIR\)/,
  },
  {
    words: ['params', 'serve', '--mode', 'async', '--workers', '1', '--token-file', 'no'],
    code: 2,
    message: /no/,
  },
  {
    words: ['exchange', 'serve', '--listen', '127.0.0.1:PORT'],
    code: 2,
    message: /cannot listen on .* \(EADDRINUSE\)/,
  },
  { words: ['frobnicate'], code: 2, message: /unknown command/ },
  { words: ['run', 'flowers'], code: 2, message: /no command/ },
]) {
  test(`dsc ${words.join(' ')} fails with exit code ${code}, a hint and no stack trace`, async (context) => {
    const world = await makeWorld(context, { server, datasets: datasets() })
    const asked = words.map((word) => word.replace('PORT', new URL(server.endpoint).port)) // which is taken
    const failed = await world.dsc(...asked)
    assert.equal(failed.code, code, failed.stderr)
    assert.match(failed.stderr, message)
    assert.doesNotMatch(failed.stderr, /\n\s+at /)
    const json = await world.dsc(...asked, '--json')
    const { error } = JSON.parse(json.stderr)
    assert.equal(error.exitCode, code)
  })
}

test('a mistake in dsc.yaml is shown with its line', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await writeFile(join(world.directory, 'dsc.yaml'), 'node: a\ncache:\n  maxPercent: 180\n')
  const failed = await world.dsc('prepare', 'flowers')
  assert.equal(failed.code, 4)
  assert.match(failed.stderr, /dsc\.yaml:3/)
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

test('a smaller quota evicts nothing by itself; cleanup evicts only what is idle and unlocked', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets(), cache: { maxDatasets: 5 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await world.dsc('prepare', 'birds', '--task', 'b')
  await world.dsc('release', 'birds', '--task', 'b')
  await world.configure({ datasets: datasets(), cache: { maxDatasets: 1 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 2)
  const dry = JSON.parse((await world.dsc('cleanup', '--dry-run', '--json')).stdout)
  assert.deepEqual(
    dry.actions.map(({ kind, dataset }: { kind: string; dataset: string }) => [kind, dataset]),
    [['evict', 'birds']],
  )
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 2)
  await world.dsc('cleanup')
  assert.deepEqual(world.query('SELECT dataset FROM cache_record'), [{ dataset: 'flowers' }])
  await world.configure({ datasets: datasets(), cache: { minFree: '900TiB' } })
  assert.equal((await world.dsc('cleanup')).stdout, 'nothing to clean up\n', 'what is leased stays')
})

test('cleanup prints what to install for cron and systemd', async (context) => {
  const world = await makeWorld(context, {})
  assert.match(
    (await world.dsc('cleanup', '--print-cron')).stdout,
    /^\*\/10 \* \* \* \* root .* cleanup --quiet/m,
  )
  assert.match((await world.dsc('cleanup', '--print-systemd')).stdout, /ExecStart=.* cleanup --quiet/)
})
