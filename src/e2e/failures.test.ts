import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { succeeds } from '../testing/dsc-processes.js'
import { startFlowerStore } from '../testing/flower-store.js'
import { makeWorld, s3Dataset, waitFor } from '../testing/world.js'

const FIXTURES = fileURLToPath(new URL('../../fixtures', import.meta.url))

const { server, bucket, datasets } = await startFlowerStore()
after(() => server.close())

test('dsc without a verb shows its help', async (context) => {
  const world = await makeWorld(context, { server })
  const { code, stdout, stderr } = await world.dsc()
  assert.deepEqual([code, stderr], [0, ''])
  assert.equal(stdout, (await world.dsc('--help')).stdout)
  const configured = await world.dsc('--config', 'dsc.yaml', '-q')
  assert.deepEqual([configured.code, configured.stdout], [0, stdout])
  assert.match((await world.dsc('--config')).stderr, /--config <file>' argument missing/)
})

test('a word of another program does the same here, and says what it is called', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const pulled = await succeeds(world.dsc('pull', 'flowers', '--task', 'a'))
  assert.match(pulled.stderr, /^dsc: `dsc pull` is called `dsc prepare`\n/)
  assert.match((await world.dsc('ls')).stdout, /flowers +node-a +ready/)
  assert.equal((await world.dsc('version', '-q')).stdout, (await world.dsc('--version')).stdout)
  const leases = await world.dsc('status', '--leases', '--json')
  assert.deepEqual([leases.stderr, JSON.parse(leases.stdout).leases.length], ['', 1])
})

test('a word of another program that deletes is only translated', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await world.dsc('release', 'flowers', '--task', 'a')
  const { code, stderr } = await world.dsc('rm', 'flowers', '--yes')
  assert.equal(code, 2)
  assert.equal(stderr, 'dsc: unknown command "rm". Did you mean evict?\n  try: dsc evict flowers --yes\n')
  assert.match((await world.dsc('status')).stdout, /flowers +node-a +ready/)
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
  assert.equal(code, 6, stdout)
  assert.match(stdout, /^dsc: cannot write to stdout \(ENOSPC\)\n$/)
})

test('a cache root whose disk is not mounted is refused instead of filled anew', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await rm(world.root, { recursive: true })
  const refused = await world.dsc('prepare', 'birds', '--task', 'a')
  assert.equal(refused.code, 3)
  assert.match(refused.stderr, /Is its disk mounted\?/)
})

for (const { words, code, message } of [
  {
    words: ['prepare', 'flowrs'],
    code: 4,
    message: /no dataset is called flowrs\. Did you mean flowers\?\n {2}try: dsc prepare flowers/,
  },
  { words: ['prepare', 'ftp://x/y'], code: 2, message: /expected/ },
  { words: ['prepare'], code: 2, message: /missing required argument/ },
  { words: ['prepare', 'flowers', '--ttl', 'soon'], code: 2, message: /soon/ },
  ...[
    'evict',
    'lock',
    'unlock',
    'verify',
    'repair',
    'release',
    'history',
    'why',
    'leases --dataset',
    'status --dataset',
  ].map((verb) => ({
    words: [...verb.split(' '), 'flowrs'],
    code: 4,
    message: new RegExp(
      `no dataset is called flowrs\\. Did you mean flowers\\?\n  try: dsc ${verb} flowers\n`,
    ),
  })),
  { words: ['lock', 'wholly-other'], code: 4, message: /called wholly-other\n {2}try: dsc dataset ls\n/ },
  {
    words: ['dataset', 'rm', 'wholly-other'],
    code: 4,
    message: /called wholly-other\n {2}try: dsc dataset ls\n/,
  },
  ...['status', 'history', 'leases', 'why flowers'].map((verb) => ({
    words: [...verb.split(' '), '--node', 'node-x'],
    code: 2,
    message: new RegExp(
      `the record knows no node node-x; it knows node-a\n  try: dsc ${verb} --node node-a\n`,
    ),
  })),
  {
    words: ['lock', 'flowers'],
    code: 4,
    message:
      /flowers has no copy on node node-a, and no other node has a ready one\n {2}try: dsc prepare flowers\n/,
  },
  {
    words: ['unlock', 'flowers'],
    code: 4,
    message: /no other node has a ready one\n {2}try: dsc why flowers\n/,
  },
  {
    words: ['verify', 'flowers'],
    code: 4,
    message: /no other node has a ready one\n {2}try: dsc prepare flowers\n/,
  },
  {
    words: [
      'exchange',
      'plan',
      '--profile',
      'missing.json',
      '--ranks',
      '2',
      '--alpha-us',
      '1',
      '--gigabits',
      '1',
    ],
    code: 2,
    message: /missing\.json cannot be read: .*\n {2}try: dsc exchange plan --help/,
  },
  { words: ['evict'], code: 2, message: /expected either datasets or --free/ },
  { words: ['evict', 'flowers', '--yes'], code: 4, message: /flowers has no copy on node node-a/ },
  { words: ['release'], code: 2, message: /nothing to release/ },
  { words: ['dataset', 'add', '../evil', 's3://b/'], code: 2, message: /expected/ },
  { words: ['dataset', 'add', 'x'], code: 2, message: /try: dsc dataset add --help/ },
  { words: ['dataset', 'add', 'x', 's3://bucket/', '--endpoint', '127.0.0.1:9'], code: 2, message: /a URL/ },
  { words: ['prepare', './photos'], code: 4, message: /file:\/\/\/.*\/photos\/: no such directory/ },
  { words: ['prepare', 'photos/new'], code: 4, message: /try: dsc prepare hf:\/\/photos\/new / },
  {
    words: ['prepare', 'flowers', 'birds', '--nodes', 'a,b'],
    code: 2,
    message: /--nodes takes one dataset, found 2\n {2}try: dsc prepare flowers --nodes a,b\n/,
  },
  { words: ['prepare', 'flowers', 'birds', '--plan'], code: 2, message: /--plan takes one dataset, found 2/ },
  {
    words: ['prepare', 'flowers', '--endpoint', 'http://a'],
    code: 2,
    message: /--endpoint: only for a source .*\n {2}try: set endpoint of flowers in dsc\.yaml\n/,
  },
  { words: ['record', 'migrate', 'nowhere.db', 'new.db'], code: 11, message: /there is no record at/ },
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
  ...[
    ['exchange', 'serve', '--token-file', '/dev/null'],
    ['params', 'serve', '--mode', 'async', '--workers', '1', '--token-file', '/dev/null'],
  ].map((words) => ({ words, code: 2, message: /the token file \/dev\/null is empty\n {2}try: / })),
  {
    words: [
      ...['exchange', 'plan', '--model', join(FIXTURES, 'exchange/vgg-16.json'), '--backward-ms', '200'],
      ...['--ranks', '2', '--alpha-us', '1', '--gigabits', '1', '--out', '/dev/null/x'],
    ],
    code: 2,
    message: /cannot write \/dev\/null\/x \(ENOTDIR\)\n {2}try: /,
  },
  ...[
    ['prepare', 'flowers', '--deadline', '30d'],
    ['feed', 'serve', 'flowers', '--idle-exit', '3000000'],
    ['params', 'serve', '--mode', 'async', '--workers', '1', '--lost-after', '3000000'],
  ].map((words) => ({ words, code: 2, message: /expected at most 24d/ })),
  { words: ['adopt', ''], code: 4, message: /no folder matches ""\n {2}try: / },
  { words: ['prepare', 'flowers', '--nodes', ','], code: 2, message: /names of nodes/ },
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

test('prepare says that an endpoint does not answer while it still tries, and not into --json', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { flowers: s3Dataset('bucket', 'flowers/', 'http://127.0.0.1:1') },
  })
  const running = world.start(['prepare', 'flowers'])
  await once(running.process.stderr!, 'data')
  running.process.kill('SIGINT')
  const [first, second] = (await running.finished).stderr.split('\n')
  assert.match(first!, /^flowers: .*http:\/\/127\.0\.0\.1:1.*ECONNREFUSED.*; retrying for some minutes$/)
  assert.match(second!, /^dsc: /)
  const { stderr } = await world.dsc('prepare', 'flowers', '--deadline', '8s', '--json')
  assert.match(stderr, /^{"dsc":1,"error"/)
})

test('a listing that its prepare gave up is shown as stopped, and can be evicted', async (context) => {
  const datasets = { flowers: s3Dataset('bucket', 'flowers/', 'http://127.0.0.1:1') }
  const world = await makeWorld(context, { server, datasets })
  const shown = async (...words: string[]) => (await world.dsc(...words)).stdout
  const running = world.start(['prepare', 'flowers'])
  await waitFor('the listing', () => world.query('SELECT 1 FROM copies').length > 0)
  running.process.kill('SIGINT')
  assert.equal((await running.finished).signal, 'SIGINT')
  const status = await waitFor('the end of the listing', async () => {
    const text = await shown('status')
    return /^flowers +\S+ +stopped /m.test(text) && text
  })
  assert.doesNotMatch(status, /listing/)
  assert.match(await shown('why', 'flowers'), /kept by +nothing: its listing was interrupted/)
  assert.match(await shown('evict', 'flowers', '--yes'), /^evicted\n +flowers /)
  assert.doesNotMatch(await shown('status'), /flowers/)
})

test('a URL under which there is nothing leaves no dataset in the record', async (context) => {
  const world = await makeWorld(context, { server })
  await mkdir(join(world.directory, 'empty'))
  const environment = { AWS_ENDPOINT_URL: server.endpoint, AWS_REGION: 'us-east-1' }
  for (const [url, message] of [
    [`${pathToFileURL(world.directory)}/missing/`, /no such directory/],
    [`${pathToFileURL(world.directory)}/empty/`, /no objects under this prefix/],
    [`s3://${bucket}/typo/`, /no objects under this prefix/],
    ['s3://no-such-bucket/', /the bucket does not exist/],
  ] as const) {
    for (const more of [['--plan'], []]) {
      const { code, stderr } = await world.start(['prepare', url, ...more], { environment }).finished
      assert.equal(code, 4, stderr)
      assert.match(stderr, message)
    }
  }
  assert.deepEqual(world.query('SELECT name FROM datasets'), [])
})

test('a mistake in dsc.yaml is shown with its line', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  await writeFile(join(world.directory, 'dsc.yaml'), 'node: a\ncache:\n  maxPercent: 180\n')
  const failed = await world.dsc('prepare', 'flowers')
  assert.equal(failed.code, 3)
  assert.match(failed.stderr, /dsc\.yaml:3/)
})
