import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PARQUET_FIXTURES } from '../../testing/parquet-files.js'
import { makeTestFolder } from '../../testing/sample-folder.js'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))

test('an index is made once and shown: formats, fields and sizes, in words and in JSON', (context) => {
  const folder = makeTestFolder(context)
  writeFileSync(join(folder, 'a.csv'), 'name,age\nAda,36\nAlan,41\n')
  writeFileSync(join(folder, 'b.csv'), 'title\nMoby Dick\n')
  const cache = makeTestFolder(context)
  const index = (...words: string[]) =>
    spawnSync(process.execPath, [DSC, 'feed', 'index', folder, ...words], {
      encoding: 'utf8',
      env: { ...process.env, XDG_CACHE_HOME: cache },
    })
  const found = JSON.parse(index('--json').stdout)
  assert.deepEqual(
    [found.samples, found.files, found.sampleBytes, found.largestSampleBytes, found.isListedBefore],
    [3, 2, 22, 9, false],
  )
  assert.deepEqual(found.formats, [
    { format: 'csv', columns: ['name', 'age'], samples: 2 },
    { format: 'csv', columns: ['title'], samples: 1 },
  ])
  assert.match(
    index().stdout,
    /3 samples in 2 files.*\nindex .*made before\nformat +csv, 2 samples: name, age\n/,
  )
  const asFiles = JSON.parse(index('--as', 'files', '--json').stdout)
  assert.deepEqual(asFiles.formats, [{ format: 'file', columns: null, samples: 2 }])
  writeFileSync(join(folder, 'b.csv'), 'title\n"Moby')
  const { status, stderr } = index()
  assert.match(stderr, /b\.csv is damaged at byte 6: a quote that nothing closes/)
  assert.notEqual(status, 0)
  assert.equal(JSON.parse(index('--on-error', 'skip', '--json').stdout).samples, 2)
})

test('rows of Parquet that were unpacked before are not unpacked again, and shown so', (context) => {
  const folder = makeTestFolder(context)
  copyFileSync(join(PARQUET_FIXTURES, 'nested.parquet'), join(folder, 'a.parquet'))
  const cache = makeTestFolder(context)
  const index = () =>
    spawnSync(process.execPath, [DSC, 'feed', 'index', folder, '--json'], {
      encoding: 'utf8',
      env: { ...process.env, XDG_CACHE_HOME: cache },
    })
  const [first, second] = [index(), index()].map(({ stdout }) => JSON.parse(stdout))
  assert.deepEqual([first.isListedBefore, second.isListedBefore], [false, true])
  assert.deepEqual([second.samples, second.fingerprint], [first.samples, first.fingerprint])
})
