import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { Manifest } from './manifest.js'
import { manifestPath } from './manifest-file.js'

test('a manifest becomes one file when those who look into it have ended', async (t) => {
  const folder = await temporaryDirectory(t)
  const manifest = Manifest.create(folder)
  manifest.writeSetting('definition', 'some')
  const looking = Manifest.openPublished(folder)
  assert.equal(looking.readSetting('definition'), 'some')
  let isFolded = false
  const folded = manifest.foldJournal().then(() => {
    isFolded = true
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(isFolded, false)
  looking.close()
  await folded
  manifest.close()
  assert.equal(existsSync(`${manifestPath(folder)}-wal`), false)
})
