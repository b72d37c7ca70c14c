import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listSettings } from './list-settings.js'
import { parseSettings } from './parse-settings.js'
import { resolveSettings } from './resolve-settings.js'

function list(yaml: string, environment: Record<string, string> = {}) {
  const config = resolveSettings({
    ...parseSettings(yaml, '/etc/dsc/dsc.yaml'),
    filePath: '/etc/dsc/dsc.yaml',
    folder: '/etc/dsc',
    workingDirectory: '/work',
    homeDirectory: '/home/u',
    cacheHome: '/home/u/.cache',
    stateHome: '/home/u/.state',
    hostName: 'gpu-07',
    environment,
    overrides: {},
  })
  return new Map(listSettings(config).map((setting) => [setting.key, setting]))
}

test('listSettings lists values as people read them, and where they came from', () => {
  const settings = list('cache: { minFree: 50GiB }\nstage: { stallTimeout: 90s }\n', { DSC_NODE: 'b' })
  assert.equal(settings.get('cache.minFree')?.text, '50 GiB')
  assert.equal(settings.get('cache.minFree')?.value, 50 * 2 ** 30)
  assert.deepEqual(settings.get('cache.minFree')?.origin, {
    kind: 'file',
    path: '/etc/dsc/dsc.yaml',
    line: 1,
  })
  assert.equal(settings.get('stage.stallTimeout')?.text, '1m30s')
  assert.deepEqual(settings.get('node')?.origin, { kind: 'environment', variable: 'DSC_NODE' })
  assert.equal(settings.get('cache.maxPercent')?.text, 'no limit')
  assert.equal(settings.get('cache.maxPercent')?.value, null)
})

test('listSettings lists how the CSV of a dataset is written under its own keys', () => {
  const settings = list(
    'datasets:\n  a:\n    source: s3://bucket/\n    format:\n      csv:\n        delimiter: "|"\n        header: false\n',
  )
  const shown = ['format', 'format.csv.delimiter', 'format.csv.header'].map((key) => {
    const { value, origin } = settings.get(`datasets.a.${key}`) ?? {}
    return [key, value, origin?.kind === 'file' && origin.line]
  })
  assert.deepEqual(shown, [
    ['format', 'csv', 5],
    ['format.csv.delimiter', '|', 6],
    ['format.csv.header', false, 7],
  ])
  assert.equal(settings.has('datasets.a.dialect'), false)
})

test('listSettings never shows the password of the record or of an endpoint', () => {
  const settings = list(
    'record: postgres://u:hunter2@h/d?password=hunter2\ndatasets: { a: { source: s3://bucket/, endpoint: "http://k:hunter2@h:9000" } }\n',
  )
  assert.equal(settings.get('record')?.value, 'postgres://h/d')
  assert.doesNotMatch(JSON.stringify([...settings.values()]), /hunter2/)
})
