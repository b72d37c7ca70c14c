import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { Manifest } from './manifest.js'
import { hasUsableManifest } from './manifest-file.js'
import { manifestPath } from './manifest-path.js'

test('a manifest becomes one file when those who look into it have ended', async (t) => {
  const folder = await temporaryDirectory(t)
  const manifest = Manifest.create(folder)
  manifest.writeSetting('definition', 'some')
  const looking = Manifest.openPublished(folder)
  assert.equal(looking.readSetting('definition'), 'some')
  let isFolded = false
  const folded = manifest.finish().then(() => {
    isFolded = true
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(isFolded, false)
  looking.close()
  await folded
  const [written, read] = readFileSync(manifestPath(folder)).subarray(18, 20)
  assert.deepEqual({ written, read }, { written: 1, read: 1 }, 'versions of the file format: no journal')
  assert.deepEqual(readdirSync(folder), ['manifest.db'])
})

test('what is to be fetched comes in the order of keys, in whatever order it was listed, and once', async (t) => {
  const manifest = Manifest.create(await temporaryDirectory(t))
  t.after(() => manifest.close())
  const object = { sizeBytes: 1, etag: null, versionId: null, checksum: null, modifiedAtMs: 0 }
  for (const keys of [
    ['c', 'd'],
    ['\u{1F600}', '\uFFFD'],
    ['a', 'b'],
  ])
    manifest.add(keys.map((key) => ({ ...object, key })))
  manifest.finishObject(manifest.find('b')!.id, 'size', null)
  const keys: string[] = []
  for (const page of manifest.missingPages(2)) {
    assert.ok(page.length <= 2)
    for (const { id, key } of page) {
      keys.push(key)
      manifest.finishObject(id, 'size', null)
    }
  }
  assert.deepEqual(keys, ['a', 'c', 'd', '\uFFFD', '\u{1F600}'])
})

const OBJECT = { sizeBytes: 1, etag: null, versionId: null, checksum: null, modifiedAtMs: 0 }

for (const key of ['../../etc/cron.d/x', 'a/../../x', '/etc/passwd', 'a/..', '.', 'a//b', 'a\\b', '']) {
  test(`a manifest in which somebody wrote the key ${JSON.stringify(key)} gives no path`, async (t) => {
    const folder = await temporaryDirectory(t)
    const filled = Manifest.create(folder, { keys: 'any' })
    filled.add([{ ...OBJECT, key }])
    assert.equal(filled.find(key)?.key, key, 'a listing that becomes no files takes every key')
    await filled.finish()
    assert.equal(hasUsableManifest(folder), false, 'a staging begins anew')
    const manifest = Manifest.openPublished(folder)
    t.after(() => manifest.close())
    const looks = {
      find: () => manifest.find(key),
      get: () => manifest.get(1),
      pages: () => [...manifest.pages('all')],
      missingPages: () => [...manifest.missingPages(10)],
      entries: () => [...manifest.entries('all')],
      entriesByKey: () => [...manifest.entriesByKey()],
      entriesFrom: () => [...manifest.entriesFrom('')],
    }
    for (const [name, look] of Object.entries(looks)) {
      if (key === '' && name === 'missingPages') continue // it begins behind the empty key
      assert.throws(look, { code: 'COPY_DAMAGED' }, name)
    }
  })
}
