import assert from 'node:assert/strict'
import { homedir } from 'node:os'
import { test } from 'node:test'
import { samplesCacheFolder } from './samples-folder.js'

for (const { environment, folder } of [
  { environment: { XDG_CACHE_HOME: '/scratch' }, folder: '/scratch/dsc/samples' },
  { environment: { XDG_CACHE_HOME: '' }, folder: `${homedir()}/.cache/dsc/samples` },
  { environment: {}, folder: `${homedir()}/.cache/dsc/samples` },
])
  test(`with ${JSON.stringify(environment)} tables are kept in ${folder}`, () =>
    assert.equal(samplesCacheFolder(environment), folder))
