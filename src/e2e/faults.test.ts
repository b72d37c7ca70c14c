import assert from 'node:assert/strict'
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import type { FaultRule } from '../testing/fault-proxy.js'
import { startFaultyStore } from '../testing/faulty-store.js'
import { makeWorld, s3Dataset } from '../testing/world.js'

const LARGE_BYTES = 40 * 1024 * 1024 // several parts

const { server, proxy, bucket, close } = await startFaultyStore()
let large: Buffer

before(async () => {
  large = Buffer.alloc(LARGE_BYTES, 'shuffled samples ')
  await server.putObject(bucket, 'data/large.bin', large)
  await server.putObject(bucket, 'data/1.txt', 'one')
  await server.putObject(bucket, 'data/2.txt', 'two')
})
after(close)

const OBJECT = 'GET .*/data/'
/** Waits only briefly where silence is the fault: a busy machine may be silent for a second, too. */
const stageFor = (rules: readonly FaultRule[]) =>
  rules.some(({ fault }) => fault.kind === 'stall') ? { stallTimeout: '1s' } : {}

for (const { name, rules } of [
  { name: 'resets', rules: [{ match: OBJECT, fault: { kind: 'reset' }, times: 3 }] },
  {
    name: 'a reset in mid-body',
    rules: [{ match: 'large.bin', fault: { kind: 'reset', afterBytes: 100_000 }, times: 1 }],
  },
  {
    name: 'a truncated body',
    rules: [{ match: OBJECT, fault: { kind: 'truncate', afterBytes: 1 }, times: 2 }],
  },
  { name: 'a flipped bit', rules: [{ match: OBJECT, fault: { kind: 'flip', atByte: 0 }, times: 2 }] },
  {
    name: '503 SlowDown with Retry-After, on the listing too',
    rules: [
      {
        match: 'GET',
        fault: { kind: 'status', status: 503, code: 'SlowDown', retryAfterSeconds: 1 },
        times: 2,
      },
    ],
  },
  {
    name: 'a silent connection',
    rules: [{ match: 'large.bin', fault: { kind: 'stall', afterBytes: 1000 }, times: 1 }],
  },
  {
    name: '500 InternalError',
    rules: [{ match: OBJECT, fault: { kind: 'status', status: 500, code: 'InternalError' }, times: 3 }],
  },
] satisfies readonly { name: string; rules: readonly FaultRule[] }[]) {
  test(`prepare survives ${name}`, async (context) => {
    const world = await makeWorld(context, {
      server,
      retryFor: '2m',
      stage: stageFor(rules),
      datasets: { data: s3Dataset(bucket, 'data/', proxy.endpoint) },
    })
    proxy.setRules(rules)
    const { stdout } = await succeeds(world.dsc('prepare', 'data', '--task', 'a'))
    assert.ok((await readFile(join(stdout.trimEnd(), 'large.bin'))).equals(large))
    assert.equal((await world.dsc('verify', 'data')).code, 0)
  })
}

for (const { name, rules = [], dataset, code, message } of [
  {
    name: 'a refused connection',
    dataset: () => s3Dataset(bucket, 'data/', 'http://127.0.0.1:9'),
    code: 8,
    message: /cannot connect to http:\/\/127\.0\.0\.1:9 /,
  },
  {
    name: '403',
    rules: [{ match: OBJECT, fault: { kind: 'status', status: 403, code: 'AccessDenied' } }],
    code: 7,
    message: /data\/\S+: access denied/,
  },
  {
    name: 'a bucket that does not exist',
    dataset: () => s3Dataset('no-such-bucket-here', 'data/', proxy.endpoint),
    code: 4,
    message: /no-such-bucket-here\/data\/: the bucket does not exist/,
  },
  {
    name: 'an empty prefix',
    dataset: () => s3Dataset(bucket, 'nothing/', proxy.endpoint),
    code: 4,
    message: /nothing\/: no objects under this prefix/,
  },
  {
    name: 'bits that stay flipped',
    rules: [{ match: '/1.txt', fault: { kind: 'flip', atByte: 0 } }],
    code: 9,
    message: /1\.txt": expected (md5|crc64nvme) \w+, found \w+ in the bytes received/,
  },
  {
    name: 'bodies that stay short',
    rules: [{ match: '/1.txt', fault: { kind: 'truncate', afterBytes: 0 } }],
    code: 8,
    message: /1\.txt: expected 3 bytes, received 0 before /,
  },
  {
    name: 'a store that stays silent',
    rules: [{ match: '/1.txt', fault: { kind: 'stall', afterBytes: 0 } }],
    code: 8,
    message: /1\.txt: no byte from .* for 1 s/,
  },
] satisfies readonly {
  name: string
  rules?: readonly FaultRule[]
  dataset?: () => ReturnType<typeof s3Dataset>
  code: number
  message: RegExp
}[]) {
  test(`prepare gives ${name} exit code ${code}, a hint, and publishes nothing`, async (context) => {
    const world = await makeWorld(context, {
      server,
      stage: stageFor(rules),
      datasets: { data: dataset ? dataset() : s3Dataset(bucket, 'data/', proxy.endpoint) },
    })
    proxy.setRules(rules)
    const failed = await world.dsc('prepare', 'data', '--task', 'a')
    proxy.setRules([])
    assert.equal(failed.code, code, failed.stderr)
    assert.equal(failed.stdout, '')
    assert.match(failed.stderr, message)
    assert.match(failed.stderr, /\n {2}try: /)
    assert.doesNotMatch(failed.stderr, /\n\s+at /)
    assert.deepEqual(world.query('SELECT * FROM cache_record'), [])
    assert.deepEqual(world.query('SELECT * FROM leases'), [])
    assert.deepEqual(await readdir(join(world.root, 'copies')), [])
    await world.dsc('cleanup', '--abandoned-after', '0s')
    assert.deepEqual(world.query('SELECT * FROM copies'), [])
    assert.deepEqual(await readdir(join(world.root, 'staging')), [])
  })
}

test('an object replaced between two parts is noticed, and the next prepare stages the new version', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { data: s3Dataset(bucket, 'changing/', proxy.endpoint) },
  })
  await server.putObject(bucket, 'changing/large.bin', large)
  const newer = Buffer.alloc(LARGE_BYTES, 'another version ')
  let parts = 0
  let replaced: Promise<void> | undefined
  proxy.setRules([])
  proxy.onRequest(async (line) => {
    if (!/GET .*changing\/large\.bin/.test(line) || ++parts !== 2) return
    replaced = server.putObject(bucket, 'changing/large.bin', newer)
    await replaced
  })
  const failed = await world.dsc('prepare', 'data', '--task', 'a')
  await replaced // this server shows new bytes before it lists them
  assert.equal(failed.code, 8, failed.stderr)
  assert.match(failed.stderr, /large\.bin/)
  assert.match(failed.stderr, /dsc prepare data --refresh/)
  const next = await succeeds(world.dsc('prepare', 'data', '--task', 'a'))
  assert.ok((await readFile(join(next.stdout.trimEnd(), 'large.bin'))).equals(newer))
})

test('verify finds one flipped byte and one missing file, and --repair fetches only those', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { data: s3Dataset(bucket, 'data/', proxy.endpoint) },
  })
  proxy.setRules([])
  const path = (await world.dsc('prepare', 'data', '--task', 'a')).stdout.trimEnd()
  assert.equal((await world.dsc('verify')).code, 0)
  const damaged = Buffer.from(large)
  damaged[LARGE_BYTES - 10]! ^= 1
  await chmod(join(path, 'large.bin'), 0o644)
  await writeFile(join(path, 'large.bin'), damaged)
  await rm(join(path, '2.txt'))
  const found = await world.dsc('verify', 'data', '--json')
  assert.equal(found.code, 9)
  assert.deepEqual(
    JSON.parse(found.stdout)
      .copies[0].damages.map(({ path, problem }: { path: string; problem: string }) => [path, problem])
      .toSorted(),
    [
      ['2.txt', 'missing'],
      ['large.bin', 'content'],
    ],
  )
  proxy.forget()
  await succeeds(world.dsc('verify', 'data', '--repair'))
  assert.ok((await readFile(join(path, 'large.bin'))).equals(large))
  assert.equal(await readFile(join(path, '2.txt'), 'utf8'), 'two')
  assert.equal(proxy.count(/GET .*1\.txt/), 0)
  assert.ok(proxy.sentBytes < LARGE_BYTES / 2, `only the wrong part is fetched, not ${proxy.sentBytes} bytes`)
  assert.equal((await world.dsc('verify')).code, 0)
})
