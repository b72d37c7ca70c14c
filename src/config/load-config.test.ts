import assert from 'node:assert/strict'
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { isDscError } from '../failure/dsc-error.js'
import { formatOrigin } from './config.js'
import { type LoadOptions, loadConfig } from './load-config.js'

const root = mkdtempSync(join(tmpdir(), 'dsc-config-'))
after(() => rmSync(root, { recursive: true }))
let count = 0

/** A new home folder, a working folder in it, and dsc.yaml there when `yaml` is given. */
function arrange(yaml?: string, more: Partial<LoadOptions> = {}) {
  count += 1
  const home = join(root, String(count))
  const work = join(home, 'project', 'deep')
  mkdirSync(work, { recursive: true })
  const file = join(work, 'dsc.yaml')
  if (yaml !== undefined) writeFileSync(file, yaml)
  const options: LoadOptions = {
    explicitPath: undefined,
    environment: {},
    workingDirectory: work,
    homeDirectory: home,
    hostName: 'gpu-07',
    ...more,
  }
  return { home, work, file, options }
}

async function failureOf(options: LoadOptions): Promise<string> {
  const error = await loadConfig(options).then(
    () => assert.fail('expected CONFIG_INVALID'),
    (reason: unknown) => reason,
  )
  if (!isDscError(error, 'CONFIG_INVALID')) throw error
  return error.message
}

test('loadConfig without any file works for one user on one machine', async () => {
  const { home, options } = arrange()
  const config = await loadConfig(options)
  assert.equal(config.filePath, undefined)
  assert.equal(config.node, 'gpu-07')
  assert.equal(config.cache.root, join(home, '.cache/dsc'))
  assert.deepEqual(config.cache.policy, { maxPercent: 80 })
  const path = join(home, '.local/state/dsc/record.db')
  assert.deepEqual(config.record, { kind: 'sqlite', url: `sqlite://${path}`, path })
  assert.deepEqual(config.datasets, [])
  assert.deepEqual(config.origins['cache.root'], { kind: 'default' })
})

test('loadConfig reads the example of the documentation into bytes, milliseconds and absolute paths', async () => {
  const { file, work, options } = arrange(`record: sqlite:///var/lib/dsc/record.db
node: gpu-08
cache:
  root: cache
  maxDatasets: 12
  maxPercent: 80
  minFree: 50GiB
datasets:
  flowers:
    source: s3://ml-data/flowers/
    endpoint: http://127.0.0.1:9000
    pathStyle: true
    include: ['**/*.jpg', labels.csv]
  local:
    source: ./photos
agent: { listen: 127.0.0.1:7171, tokenFile: ~/token }
stage: { stallTimeout: 1m, maxRequests: 96, bandwidthLimit: 80Mbit/s }
`)
  const config = await loadConfig(options)
  assert.equal(config.record.kind === 'sqlite' && config.record.path, '/var/lib/dsc/record.db')
  assert.equal(config.node, 'gpu-08')
  assert.deepEqual(config.cache, {
    root: join(work, 'cache'),
    policy: { maxDatasets: 12, maxPercent: 80, minFreeBytes: 50 * 2 ** 30 },
  })
  assert.deepEqual(config.datasets, [
    {
      name: 'flowers',
      source: 's3://ml-data/flowers/',
      endpoint: 'http://127.0.0.1:9000',
      pathStyle: true,
      include: ['**/*.jpg', 'labels.csv'],
      exclude: [],
    },
    { name: 'local', source: `file://${work}/photos`, include: [], exclude: [] },
  ])
  assert.deepEqual(config.agent, {
    listen: { host: '127.0.0.1', port: 7171 },
    tokenFile: join(options.homeDirectory, 'token'),
  })
  assert.deepEqual(config.stage, { stallTimeoutMs: 60_000, maxRequests: 96, bandwidthBytesPerSecond: 10e6 })
  assert.equal(formatOrigin(config.origins['cache.minFree']!), `${file}:7`)
  assert.equal(formatOrigin(config.origins['datasets.flowers.endpoint']!), `${file}:11`)
  assert.equal(formatOrigin(config.origins['stage.concurrency']!), 'default')
  assert.ok(
    Object.isFrozen(config) && Object.isFrozen(config.cache.policy) && Object.isFrozen(config.datasets[0]),
  )
})

test('loadConfig puts flags above the environment above the file', async () => {
  const { file, work, options } = arrange('node: a\ncache: { root: /a }\nrecord: a.db\n')
  const environment = { DSC_NODE: 'b', DSC_CACHE_ROOT: 'b', DSC_RECORD: 'postgres://u:secret@h/d' }
  const inFile = await loadConfig(options)
  assert.deepEqual([inFile.node, inFile.cache.root, inFile.record.url], ['a', '/a', `sqlite://${work}/a.db`])
  const byEnvironment = await loadConfig({ ...options, environment })
  assert.deepEqual(
    [byEnvironment.node, byEnvironment.cache.root, byEnvironment.record.url],
    ['b', join(work, 'b'), 'postgres://u:secret@h/d'],
  )
  assert.equal(formatOrigin(byEnvironment.origins.node!), 'DSC_NODE')
  const byFlag = await loadConfig({ ...options, environment, overrides: { node: 'c' } })
  assert.equal(byFlag.node, 'c')
  assert.equal(formatOrigin(byFlag.origins.node!), '--node')
  assert.equal(formatOrigin(inFile.origins['cache.root']!), `${file}:2`)
})

test('loadConfig takes paths in variables from the working folder, those in the file from its folder', async () => {
  const { home, work, options } = arrange()
  writeFileSync(join(home, 'dsc.yaml'), 'cache: { root: cache }\n')
  assert.equal((await loadConfig(options)).cache.root, join(home, 'cache'))
  const environment = { DSC_CACHE_ROOT: 'cache' }
  assert.equal((await loadConfig({ ...options, environment })).cache.root, join(work, 'cache'))
})

test('loadConfig takes an empty variable as not set, and refuses one that makes no sense', async () => {
  const { options } = arrange('node: a\n')
  assert.equal((await loadConfig({ ...options, environment: { DSC_NODE: '' } })).node, 'a')
  const message = await failureOf({ ...options, environment: { DSC_NODE: 'a b' } })
  assert.equal(message, "DSC_NODE: expected a name of letters, digits, '.', '_' and '-', found \"a b\"")
})

test('loadConfig lets datasets share keys by YAML anchors', async () => {
  const { options } = arrange(
    'datasets:\n  a: &minio { source: s3://bucket/a/, region: eu }\n  b: { <<: *minio, source: s3://bucket/b/ }\n',
  )
  const { datasets } = await loadConfig(options)
  assert.deepEqual(
    datasets.map(({ source, region }) => `${source} ${region}`),
    ['s3://bucket/a/ eu', 's3://bucket/b/ eu'],
  )
})

test('loadConfig keeps the record beside a cache root that was chosen, so that its users share both', async () => {
  const { options } = arrange('cache: { root: /shared }\n')
  assert.equal((await loadConfig(options)).record.url, 'sqlite:///shared/record.db')
})

test('loadConfig looks at --config, DSC_CONFIG, parents of the working folder, then XDG_CONFIG_HOME', async () => {
  const { home, options } = arrange()
  const place = (path: string, node: string) => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), `node: ${node}\n`)
    return join(home, path)
  }
  const nodeWith = async (more: Partial<LoadOptions> = {}) => (await loadConfig({ ...options, ...more })).node
  place('.config/dsc/dsc.yaml', 'home')
  assert.equal(await nodeWith(), 'home')
  place('xdg/dsc/dsc.yaml', 'xdg')
  assert.equal(await nodeWith({ environment: { XDG_CONFIG_HOME: join(home, 'xdg') } }), 'xdg')
  place('project/dsc.yaml', 'parent')
  assert.equal(await nodeWith(), 'parent')
  const environment = { DSC_CONFIG: place('variable.yaml', 'variable') }
  assert.equal(await nodeWith({ environment }), 'variable')
  assert.equal(await nodeWith({ environment, explicitPath: place('flag.yaml', 'flag') }), 'flag')
})

test('loadConfig refuses a named file that is missing instead of taking the next one', async () => {
  const { options, work } = arrange('node: a\n')
  assert.match(await failureOf({ ...options, explicitPath: 'gone.yaml' }), /--config names .*gone\.yaml/)
  assert.match(await failureOf({ ...options, environment: { DSC_CONFIG: work } }), /DSC_CONFIG names/)
})

for (const { name, yaml, says } of [
  {
    name: 'an unknown key',
    yaml: 'cache:\n  maxDataset: 3\n',
    says: ':2:3: cache: unknown key maxDataset, did you mean maxDatasets?',
  },
  {
    name: 'a key like no other',
    yaml: 'zebra: 1\n',
    says: ':1:1: unknown key zebra, expected one of record, node, cache, datasets, agent, stage',
  },
  {
    name: 'an unknown key of a dataset',
    yaml: 'datasets:\n  a:\n    source: s3://bucket/\n    regoin: eu\n',
    says: ':4:5: datasets.a: unknown key regoin, did you mean region?',
  },
  {
    name: 'a size without sense',
    yaml: 'cache:\n  minFree: lots\n',
    says: ':2:12: cache.minFree: expected a byte size such as 50GiB, 10GB or 4096, found "lots"',
  },
  {
    name: 'a list where keys belong',
    yaml: 'cache: [1]\n',
    says: ':1:8: cache: expected keys with values, found [1]',
  },
  {
    name: 'a long text where it does not belong',
    yaml: `cache:\n  minFree: ${'x'.repeat(500)}\n`,
    says: `:2:12: cache.minFree: expected a byte size such as 50GiB, 10GB or 4096, found "${'x'.repeat(228)}…`,
  },
  {
    name: 'a percentage out of range',
    yaml: 'cache:\n  maxPercent: 120\n',
    says: ':2:15: cache.maxPercent: expected a percentage above 0 and up to 100, such as 80, found 120',
  },
  {
    name: 'a percentage as text out of range',
    yaml: 'cache:\n  maxPercent: 120%\n',
    says: ':2:15: cache.maxPercent: expected a percentage above 0 and up to 100, such as 80, found "120%"',
  },
  {
    name: 'a fraction of a dataset',
    yaml: 'cache: { maxDatasets: 1.5 }\n',
    says: ':1:23: cache.maxDatasets: expected a whole number from 1 to 1000000, found 1.5',
  },
  {
    name: 'a missing source',
    yaml: 'datasets:\n  a:\n    region: eu\n',
    says: ':2:3: datasets.a.source: expected a source such as s3://bucket/prefix/ or file:///folder/, found nothing',
  },
  {
    name: 'a source of another kind',
    yaml: 'datasets:\n  a: { source: ftp://x/ }\n',
    says: ':2:16: datasets.a.source: ',
  },
  {
    name: 'a dataset name with a slash',
    yaml: 'datasets:\n  a/b: { source: s3://bucket/ }\n',
    says: ':2:8: datasets.a/b: ',
  },
  {
    name: 'a list where keys belong',
    yaml: '- 1\n',
    says: ':1:1: expected a mapping of keys to values, found [1]',
  },
  {
    name: 'a node name that YAML reads as a number',
    yaml: 'node: 12\n',
    says: ':1:7: node: expected the name of this node, in quotes if it is a number, found 12',
  },
  {
    name: 'a duration without a unit',
    yaml: 'stage: { stallTimeout: 30 }\n',
    says: ':1:24: stage.stallTimeout: expected a duration such as 90s, 24h or 1h30m, found 30',
  },
  {
    name: 'an address without a port',
    yaml: 'agent:\n  listen: localhost\n',
    says: ':2:11: agent.listen: expected host:port such as 127.0.0.1:7070, found "localhost"',
  },
  {
    name: 'a low-water mark above the limit',
    yaml: 'cache:\n  maxPercent: 50\n  lowWaterPercent: 60\n',
    says: ':3:20: cache.lowWaterPercent: expected at most maxPercent (50), found 60',
  },
  { name: 'a key that stands twice', yaml: 'node: a\nnode: b\n', says: ':2:1: Map keys must be unique' },
  { name: 'broken YAML', yaml: 'cache:\n  root: "x\n', says: ':3:1: Missing closing "quote' },
  { name: 'an unknown tag', yaml: 'node: !env NODE\n', says: ':1:7: Unresolved tag: !env' },
]) {
  test(`loadConfig says where ${name} stands and what was expected`, async () => {
    const { file, options } = arrange(yaml)
    const message = await failureOf(options)
    assert.ok(message.startsWith(file + says), `${message}\ninstead of\n${file}${says}`)
  })
}

test('loadConfig tells every mistake of a file at once, in its order', async () => {
  const { options } = arrange('zebra: 1\ncache:\n  minFree: lots\n  rot: /x\n')
  assert.deepEqual(
    (await failureOf(options)).split('\n').map((line) => /:(\d+):\d+: /.exec(line)?.[1]),
    ['1', '3', '4'],
  )
})

test('loadConfig takes keys without a value as not set', async () => {
  const { options } = arrange('cache:\n  # root: /x\nagent:\n  tokenFile:\n')
  const config = await loadConfig(options)
  assert.equal(config.cache.root, join(options.homeDirectory, '.cache/dsc'))
  assert.equal(config.agent.tokenFile, undefined)
})

test('loadConfig does not show the password of a record that it refuses', async () => {
  const { options } = arrange('record: mysql://user:hunter2@host/db\n')
  const message = await failureOf(options)
  assert.match(message, /:1: record: expected sqlite:.*found mysql:\/\/host\/db/)
  assert.doesNotMatch(message, /hunter2/)
})

test('loadConfig does not show the password in a source that it refuses', async () => {
  const { options } = arrange('datasets: { a: { source: "s3://me:hunter2@bucket/" } }\n')
  assert.doesNotMatch(await failureOf(options), /hunter2/)
})

test('loadConfig gives the same from its memory as from the file, and notices every change', async () => {
  const { file, options } = arrange('node: a\ncache: { minFree: 1GiB }\ndatasets: { x: { source: ./x } }\n')
  const cacheFolder = join(options.homeDirectory, '.cache', 'dsc-config')
  const later = { ...options, nowMs: Date.now() + 60_000 }
  const cold = await loadConfig(later)
  const [entry] = readdirSync(cacheFolder)
  assert.equal(statSync(join(cacheFolder, entry!)).mode & 0o777, 0o600)
  assert.deepEqual(await loadConfig(later), cold)
  const remembered = readFileSync(join(cacheFolder, entry!), 'utf8')
  writeFileSync(join(cacheFolder, entry!), remembered.replace('"node":"a"', '"node":"from-memory"'))
  assert.equal((await loadConfig(later)).node, 'from-memory', 'the file was read again')
  assert.equal((await loadConfig({ ...later, version: '1' })).node, 'a', 'another version must read again')

  // Same size and modification time as before: only the time of the change tells.
  utimesSync(file, 1_600_000_000, 1_600_000_000)
  assert.equal((await loadConfig(later)).node, 'a')
  writeFileSync(file, 'node: b\ncache: { minFree: 1GiB }\ndatasets: { x: { source: ./x } }\n')
  utimesSync(file, 1_600_000_000, 1_600_000_000)
  assert.equal((await loadConfig(later)).node, 'b')

  writeFileSync(join(cacheFolder, entry!), '{"stamp":')
  assert.equal((await loadConfig(later)).node, 'b')
})

test('loadConfig ignores what another user remembered', { skip: process.getuid?.() !== 0 }, async () => {
  const { options } = arrange('node: a\n')
  const cacheFolder = join(options.homeDirectory, '.cache', 'dsc-config')
  const later = { ...options, nowMs: Date.now() + 60_000 }
  await loadConfig(later)
  const entry = join(cacheFolder, readdirSync(cacheFolder)[0]!)
  writeFileSync(entry, readFileSync(entry, 'utf8').replace('"node":"a"', '"node":"forged"'))
  assert.equal((await loadConfig(later)).node, 'forged')
  chownSync(entry, 12345, 12345)
  assert.equal((await loadConfig(later)).node, 'a')
})

test('loadConfig does not remember a file that changed a moment ago', async () => {
  const { options } = arrange('node: a\n')
  await loadConfig(options)
  assert.throws(() => readdirSync(join(options.homeDirectory, '.cache', 'dsc-config')), { code: 'ENOENT' })
})
