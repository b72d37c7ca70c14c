import assert from 'node:assert/strict'
import { chownSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { arrangeConfig, configFailureOf } from '../testing/config-home.js'
import { needsRoot } from '../testing/needs.js'
import { formatOrigin } from './config.js'
import { type LoadOptions, loadConfig } from './load-config.js'

/** The settings that have a value, as JSON keeps them. */
function withoutUnset(settings: object): unknown {
  return JSON.parse(JSON.stringify(settings))
}

test('loadConfig without any file works for one user on one machine', async () => {
  const { home, options } = arrangeConfig()
  const config = await loadConfig(options)
  assert.equal(config.filePath, undefined)
  assert.equal(config.node, 'gpu-07')
  assert.equal(config.cache.root, join(home, '.cache/dsc'))
  assert.deepEqual(withoutUnset(config.cache.policy), { maxPercent: 80 })
  const path = join(home, '.local/state/dsc/record.db')
  assert.deepEqual(config.record, { kind: 'sqlite', url: `sqlite://${path}`, path })
  assert.deepEqual(config.datasets, [])
  assert.deepEqual(config.origins['cache.root'], { kind: 'default' })
})

test('loadConfig reads the example of the documentation into bytes, milliseconds and absolute paths', async () => {
  const { file, work, options } = arrangeConfig(`record: sqlite:///var/lib/dsc/record.db
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
  assert.deepEqual(withoutUnset(config.cache), {
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
  assert.deepEqual(withoutUnset(config.agent), {
    admins: [],
    undeclaredBytesPerUser: 100 * 1024 ** 3,
    listen: { host: '127.0.0.1', port: 7171 },
    tokenFile: join(options.homeDirectory, 'token'),
    isPageEverywhere: false,
  })
  assert.deepEqual(withoutUnset(config.stage), {
    stallTimeoutMs: 60_000,
    maxRequests: 96,
    bandwidthBytesPerSecond: 10e6,
  })
  assert.equal(formatOrigin(config.origins['cache.minFree']!), `${file}:7`)
  assert.equal(formatOrigin(config.origins['datasets.flowers.endpoint']!), `${file}:11`)
  assert.equal(formatOrigin(config.origins['stage.concurrency']!), 'default')
  assert.ok(
    Object.isFrozen(config) && Object.isFrozen(config.cache.policy) && Object.isFrozen(config.datasets[0]),
  )
})

test('loadConfig puts flags above the environment above the file', async () => {
  const { file, work, options } = arrangeConfig('node: a\ncache: { root: /a }\nrecord: a.db\n')
  const environment = { DSC_NODE: 'b', DSC_CACHE_ROOT: 'b', DSC_RECORD: 'postgres://u:secret@h/d' }
  const inFile = await loadConfig(options)
  assert.deepEqual([inFile.node, inFile.cache.root, inFile.record.url], ['a', '/a', `sqlite://${work}/a.db`])
  const byEnvironment = await loadConfig({ ...options, environment })
  assert.deepEqual(
    [byEnvironment.node, byEnvironment.cache.root, byEnvironment.record.url],
    ['b', join(work, 'b'), 'postgres://u:secret@h/d'],
  )
  assert.equal(formatOrigin(byEnvironment.origins.node!), 'DSC_NODE')
  const overrides = { bandwidthBytesPerSecond: 7 }
  const byFlag = await loadConfig({ ...options, environment, overrides })
  assert.equal(byFlag.stage.bandwidthBytesPerSecond, 7)
  assert.equal(formatOrigin(byFlag.origins['stage.bandwidthLimit']!), '--bandwidth-limit')
  assert.equal(formatOrigin(inFile.origins['cache.root']!), `${file}:2`)
})

test('loadConfig takes paths in variables from the working folder, those in the file from its folder', async () => {
  const { home, work, options } = arrangeConfig()
  writeFileSync(join(home, 'dsc.yaml'), 'cache: { root: cache }\n')
  assert.equal((await loadConfig(options)).cache.root, join(home, 'cache'))
  const environment = { DSC_CACHE_ROOT: 'cache' }
  assert.equal((await loadConfig({ ...options, environment })).cache.root, join(work, 'cache'))
})

test('loadConfig takes an empty variable as not set, and refuses one that makes no sense', async () => {
  const { options } = arrangeConfig('node: a\n')
  assert.equal((await loadConfig({ ...options, environment: { DSC_NODE: '' } })).node, 'a')
  const message = await configFailureOf({ ...options, environment: { DSC_NODE: 'a b' } })
  assert.equal(message, "DSC_NODE: expected a name of letters, digits, '.', '_' and '-', found \"a b\"")
})

test('loadConfig reads a source alone as a dataset', async () => {
  const { options, file } = arrangeConfig('datasets:\n  a: s3://bucket/a/\n  b: ./b\n')
  const { datasets, origins } = await loadConfig(options)
  assert.deepEqual(datasets, [
    { name: 'a', source: 's3://bucket/a/', include: [], exclude: [] },
    { name: 'b', source: pathToFileURL(join(dirname(file), 'b')).href, include: [], exclude: [] },
  ])
  assert.equal(formatOrigin(origins['datasets.b.source']!), `${file}:3`)
})

test('loadConfig lets datasets share keys by YAML anchors', async () => {
  const { options } = arrangeConfig(
    'datasets:\n  a: &minio { source: s3://bucket/a/, region: eu }\n  b: { <<: *minio, source: s3://bucket/b/ }\n',
  )
  const { datasets } = await loadConfig(options)
  assert.deepEqual(
    datasets.map(({ source, region }) => `${source} ${region}`),
    ['s3://bucket/a/ eu', 's3://bucket/b/ eu'],
  )
})

test('loadConfig keeps the record beside a cache root that was chosen, so that its users share both', async () => {
  const { options } = arrangeConfig('cache: { root: /shared }\n')
  assert.equal((await loadConfig(options)).record.url, 'sqlite:///shared/record.db')
})

test('loadConfig looks at --config, DSC_CONFIG, parents of the working folder, then XDG_CONFIG_HOME', async () => {
  const { home, options } = arrangeConfig()
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
  const { options, work } = arrangeConfig('node: a\n')
  assert.match(
    await configFailureOf({ ...options, explicitPath: 'gone.yaml' }),
    /--config names .*gone\.yaml/,
  )
  assert.match(await configFailureOf({ ...options, environment: { DSC_CONFIG: work } }), /DSC_CONFIG names/)
})

test('loadConfig takes keys without a value as not set', async () => {
  const { options } = arrangeConfig('cache:\n  # root: /x\nagent:\n  tokenFile:\n')
  const config = await loadConfig(options)
  assert.equal(config.cache.root, join(options.homeDirectory, '.cache/dsc'))
  assert.equal(config.agent.tokenFile, undefined)
})

test('loadConfig gives the same from its memory as from the file, and notices every change', async () => {
  const { file, options } = arrangeConfig(
    'node: a\ncache: { minFree: 1GiB }\ndatasets: { x: { source: ./x } }\n',
  )
  const cacheFolder = join(options.homeDirectory, '.cache', 'dsc-config')
  const cold = await loadConfig(options)
  const [entry] = readdirSync(cacheFolder)
  assert.equal(statSync(join(cacheFolder, entry!)).mode & 0o777, 0o600)
  assert.deepEqual(await loadConfig(options), cold)
  const remembered = readFileSync(join(cacheFolder, entry!), 'utf8')
  writeFileSync(join(cacheFolder, entry!), remembered.replace('"node":"a"', '"node":"from-memory"'))
  assert.equal((await loadConfig(options)).node, 'from-memory', 'the file was read again')
  assert.equal((await loadConfig({ ...options, version: '1' })).node, 'a', 'another version must read again')

  // Same size and modification time as before.
  utimesSync(file, 1_600_000_000, 1_600_000_000)
  assert.equal((await loadConfig(options)).node, 'a')
  writeFileSync(file, 'node: b\ncache: { minFree: 1GiB }\ndatasets: { x: { source: ./x } }\n')
  utimesSync(file, 1_600_000_000, 1_600_000_000)
  assert.equal((await loadConfig(options)).node, 'b')

  writeFileSync(join(cacheFolder, entry!), '{"format":')
  assert.equal((await loadConfig(options)).node, 'b')
})

test('loadConfig ignores what another user remembered', { skip: needsRoot }, async () => {
  const { options } = arrangeConfig('node: a\n')
  const cacheFolder = join(options.homeDirectory, '.cache', 'dsc-config')
  await loadConfig(options)
  const entry = join(cacheFolder, readdirSync(cacheFolder)[0]!)
  writeFileSync(entry, readFileSync(entry, 'utf8').replace('"node":"a"', '"node":"forged"'))
  assert.equal((await loadConfig(options)).node, 'forged')
  chownSync(entry, 12345, 12345)
  assert.equal((await loadConfig(options)).node, 'a')
})

for (const { written, percent } of [
  { written: '0.5%', percent: 0.5 },
  { written: '62.5 %', percent: 62.5 },
  { written: '100.0%', percent: 100 },
])
  test(`loadConfig reads ${written} as a share`, async () => {
    const { options } = arrangeConfig(`cache:\n  maxPercent: ${written}\n`)
    assert.deepEqual(withoutUnset((await loadConfig(options)).cache.policy), { maxPercent: percent })
  })

test('loadConfig gives a dataset with readers to no pods but those of namespaces that it names', async () => {
  const { options } = arrangeConfig(
    [
      'datasets:',
      '  open: { source: s3://bucket/open/ }',
      '  faces: { source: s3://bucket/faces/, readers: [user:ada, group:vision] }',
      '  both: { source: s3://bucket/both/, readers: [user:ada], namespaces: [team-a] }',
    ].join('\n'),
  )
  const { datasets, csi } = await loadConfig(options)
  assert.deepEqual(csi.namespaces, { faces: [], both: ['team-a'] })
  assert.deepEqual(
    datasets.map(({ readers }) => readers),
    [undefined, ['user:ada', 'group:vision'], ['user:ada']],
  )
})
