import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Manifest } from '../../manifest/manifest.js'
import type { Dataset } from '../../model/dataset.js'
import { openMemorySource } from '../../testing/memory-source.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { listIntoManifest } from './list-into-manifest.js'

const dataset: Dataset = { name: 'd', source: 's3://bucket/', include: [], exclude: ['*.tmp'] }
/** Three pages. */
const KEYS = Array.from({ length: 2500 }, (_, index) => `${String(index).padStart(5, '0')}.bin`)

/** A listed copy, and functions that list its source again with and without it. */
async function makeKnown(context: TestContext) {
  const folder = await temporaryDirectory(context)
  const source = openMemorySource(Object.fromEntries(KEYS.map((key) => [key, `content of ${key}`])))
  const knownDirectory = join(folder, 'known')
  const known = await listIntoManifest({ source, dataset, copyDirectory: knownDirectory })
  let copies = 0
  const list = async (wanted: { readonly isHeld: boolean; readonly dataset?: Dataset }) => {
    const copyDirectory = join(folder, `copy-${copies++}`)
    const listing = await listIntoManifest({
      source,
      dataset: wanted.dataset ?? dataset,
      copyDirectory,
      ...(wanted.isHeld && { knownDirectory }),
    })
    const manifest = Manifest.open(copyDirectory)
    try {
      const objects = [...manifest.entriesByKey()].map(({ key, etag, state }) => [key, etag, state])
      return { listing, objects, isComplete: manifest.readSetting('listing') !== undefined }
    } finally {
      manifest.close()
    }
  }
  return { source, known, list }
}

test('a source in which nothing has changed is known by a ready copy, and no manifest is filled', async (context) => {
  const { source, known, list } = await makeKnown(context)
  source.objects.set('new.tmp', Buffer.from('which exclude leaves out'))
  const { listing, objects, isComplete } = await list({ isHeld: true })
  assert.deepEqual(listing, { ...known, filteredObjects: 1, isKnown: true })
  assert.deepEqual([objects.length, isComplete], [0, false])
})

for (const { name, change } of [
  { name: 'an object that changed', change: { '01700.bin': 'other' } },
  { name: 'a new object', change: { '01700x.bin': 'new' } },
  { name: 'a new object behind all others', change: { zzz: 'new' } },
  { name: 'an object less, in the first page', change: { '00007.bin': undefined } },
  { name: 'the last object less', change: { '02499.bin': undefined } },
] as { name: string; change: Record<string, string | undefined> }[]) {
  test(`with ${name}, a listing is what it is without the ready copy`, async (context) => {
    const { source, known, list } = await makeKnown(context)
    for (const [key, content] of Object.entries(change)) {
      if (content === undefined) source.objects.delete(key)
      else source.objects.set(key, Buffer.from(content))
    }
    const [held, fresh] = [await list({ isHeld: true }), await list({ isHeld: false })]
    assert.deepEqual(held.objects, fresh.objects)
    assert.ok(held.isComplete)
    assert.equal(held.listing.version, fresh.listing.version)
    assert.notEqual(held.listing.version, known.version)
    assert.equal(held.listing.isKnown, undefined)
  })
}

test('a copy that was listed by another definition says nothing', async (context) => {
  const { list } = await makeKnown(context)
  const other = await list({ isHeld: true, dataset: { ...dataset, exclude: [] } })
  assert.deepEqual([other.objects.length, other.isComplete], [KEYS.length, true])
})
