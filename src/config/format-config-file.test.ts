import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatConfigFile } from './format-config-file.js'
import { parseSettings } from './parse-settings.js'

test('a new dsc.yaml with only a cache root is valid and sets nothing else', () => {
  const { settings } = parseSettings(formatConfigFile({ cacheRoot: '/nvme/dsc' }), 'dsc.yaml')
  assert.deepEqual(settings, { cache: { root: '/nvme/dsc' } })
})

test('a new dsc.yaml says exactly what was asked for', () => {
  const asked = {
    cacheRoot: '/mnt/my disk: #1/dsc',
    node: '12',
    record: 'postgres://u@h/d',
    maxDatasets: 3,
    maxPercent: 62.5,
    minFreeBytes: 50 * 2 ** 30,
    lowWaterPercent: 10,
  }
  const text = formatConfigFile(asked)
  assert.match(text, /minFree: 50GiB/)
  assert.deepEqual(parseSettings(text, 'dsc.yaml').settings, {
    node: '12',
    record: 'postgres://u@h/d',
    cache: {
      root: asked.cacheRoot,
      maxDatasets: 3,
      maxPercent: 62.5,
      minFree: 50 * 2 ** 30,
      lowWaterPercent: 10,
    },
  })
})

test('a new dsc.yaml declares the datasets that are asked for, whatever their names', () => {
  const datasets = { flowers: 's3://ml-data/flowers/', '12': 'file:///srv/my%20data/#1' }
  const { settings } = parseSettings(formatConfigFile({ cacheRoot: '/c', datasets }), 'dsc.yaml')
  const sources = Object.entries(settings.datasets ?? {}).map(([name, { source }]) => [name, source])
  assert.deepEqual(Object.fromEntries(sources), datasets)
})

for (const minFreeBytes of [0, 1, 1536, 10e9, 2 ** 30 + 1]) {
  test(`a new dsc.yaml keeps ${minFreeBytes} bytes exactly`, () => {
    const text = formatConfigFile({ cacheRoot: '/c', minFreeBytes })
    assert.equal(parseSettings(text, 'dsc.yaml').settings.cache?.minFree, minFreeBytes)
  })
}

for (const cacheRoot of [
  '~',
  'yes',
  'a:',
  './x',
  '-x',
  '1e3',
  '=',
  "it's",
  'null',
  '~/c',
  'x: y',
  'a #b',
  '.5',
]) {
  test(`a new dsc.yaml keeps the folder ${cacheRoot} as text`, () => {
    assert.equal(parseSettings(formatConfigFile({ cacheRoot }), 'dsc.yaml').settings.cache?.root, cacheRoot)
  })
}

test('the dataset in the comments of a new dsc.yaml is valid once its comment signs are gone', () => {
  const text = formatConfigFile({ cacheRoot: '/c' }).replace(/^#( {2}.*)$/gm, '$1')
  assert.deepEqual(parseSettings(text, 'dsc.yaml').settings.datasets?.flowers?.include, [
    '**/*.jpg',
    'labels.csv',
  ])
})
