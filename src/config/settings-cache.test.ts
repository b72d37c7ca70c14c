import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseSettings } from './parse-settings.js'
import { readSettingsCache, settingsCachePath, writeSettingsCache } from './settings-cache.js'

const root = mkdtempSync(join(tmpdir(), 'dsc-settings-'))
after(() => rmSync(root, { recursive: true }))

const EXAMPLE = `record: a.db
node: gpu-07
cache: { root: /c, maxDatasets: 1, maxPercent: 80%, minFree: 1kB, lowWaterPercent: 50 }
datasets: { flowers: { source: s3://bucket/, include: [a] } }
agent: { listen: 127.0.0.1:7070, tokenFile: t }
stage: { concurrency: 4, stallTimeout: 1s, bandwidthLimit: 1MB }
`

test('the remembered form is pinned: when this fails, bump FORMAT, or a new dsc misreads what an old one wrote', () => {
  const parsed = parseSettings(EXAMPLE, 'dsc.yaml')
  assert.equal(
    JSON.stringify(parsed.settings),
    '{"record":"a.db","node":"gpu-07","cache":{"root":"/c","maxDatasets":1,"maxPercent":80,"minFree":1000,' +
      '"lowWaterPercent":50},"datasets":{"flowers":{"source":"s3://bucket/","include":["a"]}},"agent":{"listen":' +
      '{"host":"127.0.0.1","port":7070},"tokenFile":"t"},"stage":{"concurrency":4,"stallTimeout":1000,"bandwidthLimit":1000000}}',
  )
})

test('what is remembered comes back as JSON keeps it, for its text, path and version alone', () => {
  const origin = { path: '/etc/dsc/dsc.yaml', text: EXAMPLE, version: '1' }
  const parsed = parseSettings(EXAMPLE, origin.path)
  const cachePath = settingsCachePath(root, origin.path)
  writeSettingsCache(cachePath, origin, parsed)
  assert.deepEqual(readSettingsCache(cachePath, origin), parsed)
  for (const other of [{ text: `${EXAMPLE}#` }, { path: '/dsc.yaml' }, { version: '2' }]) {
    assert.equal(readSettingsCache(cachePath, { ...origin, ...other }), undefined)
  }
  const folder = join(root, 'dsc-config')
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  assert.equal(readdirSync(folder).length, 1, 'a part file stayed behind')
  assert.equal(JSON.parse(readFileSync(cachePath, 'utf8')).format, 3)
})

test('a folder that cannot be written costs time, not the command', () => {
  const file = join(root, 'dsc.yaml')
  writeFileSync(file, EXAMPLE)
  const origin = { path: file, text: EXAMPLE, version: '1' }
  const cachePath = settingsCachePath(join(file, 'below-a-file'), file)
  writeSettingsCache(cachePath, origin, parseSettings(EXAMPLE, file))
  assert.equal(readSettingsCache(cachePath, origin), undefined)
})

test('the longest path has a name that a file system takes', () => {
  const name = settingsCachePath('/c', `/${'ö'.repeat(2000)}/dsc.yaml`).slice('/c/dsc-config/'.length)
  assert.ok(Buffer.byteLength(name) < 230)
})
