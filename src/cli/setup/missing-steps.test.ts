import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../config/config.js'
import {
  describeStep,
  listDifferences,
  listMissingSteps,
  type NodeFacts,
  parseDatasetWords,
} from './missing-steps.js'

type Planned = Pick<Config, 'cache' | 'record' | 'agent' | 'datasets'>

/** A node's configuration with these places; nothing else of it counts here. */
function configOf(root: string, { record = `${root}/record.db`, door = '/run/dsc/dsc.sock' } = {}): Planned {
  return {
    cache: { root, policy: { maxPercent: 80 } },
    record: { kind: 'sqlite', url: `sqlite://${record}`, path: record },
    agent: { door } as Config['agent'],
    datasets: [{ name: 'flowers', source: 's3://ml/flowers/', include: [], exclude: [] }],
  }
}

const RUNS = { isEnabled: true, isActive: true }
const STOPPED = { isEnabled: false, isActive: false }
const CONFIG = '/etc/dsc/dsc.yaml'
const UNIT = '/etc/systemd/system/dsc-agent.service'
const FOLDERS = `${UNIT}.d/folders.conf`
const WRITABLE = '[Service]\nReadWritePaths=/nvme/dsc\n'

for (const { name, facts = {}, files = {}, config = configOf('/nvme/dsc'), steps } of [
  { name: 'a bare machine', facts: {}, steps: ['user', '/nvme/dsc', CONFIG, UNIT, FOLDERS, 'start'] },
  {
    name: 'a machine whose package has made user, folder and unit',
    facts: { hasUser: true, hasRoot: true, hasPackagedUnit: true },
    config: configOf('/var/lib/dsc/cache'),
    steps: [CONFIG, 'start'],
  },
  { name: 'no systemd', facts: { service: undefined }, steps: ['user', '/nvme/dsc', CONFIG] },
  {
    name: 'a node that is set up',
    facts: { hasUser: true, hasRoot: true, service: RUNS },
    files: { [CONFIG]: 'config', [UNIT]: 'unit', [FOLDERS]: WRITABLE },
    steps: [],
  },
  {
    name: 'a node whose dsc was installed elsewhere',
    facts: { hasUser: true, hasRoot: true, service: RUNS },
    files: { [CONFIG]: 'config', [UNIT]: 'old', [FOLDERS]: WRITABLE },
    steps: [UNIT, 'restart'],
  },
  {
    name: 'a service that was stopped',
    facts: { hasUser: true, hasRoot: true, service: { isEnabled: true, isActive: false } },
    files: { [CONFIG]: 'config', [UNIT]: 'unit', [FOLDERS]: WRITABLE },
    steps: ['start'],
  },
] as readonly {
  name: string
  facts?: Partial<NodeFacts>
  files?: Record<string, string>
  config?: Planned
  steps: string[]
}[])
  test(`setting up ${name} does what is missing, in order`, () => {
    const planned = listMissingSteps(
      {
        ...{ hasUser: false, hasRoot: false, service: STOPPED, hasPackagedUnit: false },
        ...{ readText: (path) => files[path], ...facts },
      },
      { configPath: CONFIG, configText: 'config', config, unit: 'dsc-agent.service', unitText: 'unit' },
    )
    assert.deepEqual(
      planned.map(({ kind, path }) => path ?? kind),
      steps,
    )
  })

test('the sandbox lets the service write the folders of cache, record and door, each once', () => {
  const config = configOf('/var/lib/dscache', { record: '/data/my record/r.db', door: '/run/dsc/x.sock' })
  const steps = listMissingSteps(
    {
      ...{ hasUser: true, hasRoot: true, service: RUNS, hasPackagedUnit: true },
      readText: (path) => (path === CONFIG ? 'config' : undefined),
    },
    { configPath: CONFIG, configText: 'config', config, unit: 'dsc-agent.service', unitText: 'unit' },
  )
  assert.deepEqual(steps[0], {
    ...{ kind: 'file', path: FOLDERS },
    text: '[Service]\nReadWritePaths=/var/lib/dscache\nReadWritePaths="/data/my record"\n',
  })
})

for (const { wanted, differences } of [
  { wanted: { datasets: {} }, differences: [] },
  {
    wanted: { cacheRoot: '/nvme/dsc', maxPercent: 80, datasets: { flowers: 's3://ml/flowers/' } },
    differences: [],
  },
  {
    wanted: { cacheRoot: '/data', maxPercent: 70, datasets: { flowers: 's3://x/', birds: 's3://y/' } },
    differences: [
      'cache.root: expected /data, found /nvme/dsc',
      'cache.maxPercent: expected 70, found 80',
      'datasets.flowers: expected s3://x/, found s3://ml/flowers/',
      'datasets.birds: expected s3://y/, found none',
    ],
  },
])
  test(`${differences.length} differences from a dsc.yaml are named`, () => {
    assert.deepEqual(listDifferences(wanted, configOf('/nvme/dsc')), differences)
  })

test('datasets are read as name=URL, whatever the URL has', () => {
  assert.deepEqual(parseDatasetWords(['a=s3://b/c=d/', 'e=/srv/e']), { a: 's3://b/c=d/', e: '/srv/e' })
  for (const wrong of ['flowers', 's3://b/?x=y', '=s3://b/', 'a='])
    assert.throws(() => parseDatasetWords([wrong]), new RegExp(`found "${wrong.replace('?', '\\?')}"`))
})

test('a step reads as what was done, or as what would be', () => {
  const step = { kind: 'folder', path: '/nvme/dsc' } as const
  assert.equal(describeStep(step, { isDryRun: false }), 'made /nvme/dsc for dsc')
  assert.equal(describeStep(step, { isDryRun: true }), 'would make /nvme/dsc for dsc')
})
