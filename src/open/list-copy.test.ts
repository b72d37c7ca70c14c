import assert from 'node:assert/strict'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Manifest } from '../manifest/manifest.js'
import type { Copy } from '../model/copy.js'
import { indexSamples } from '../samples/index-samples.js'
import { listFolder } from '../samples/list-folder.js'
import { SampleReader } from '../samples/read-samples.js'
import { exampleCopy } from '../testing/example-copies.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { listCopy } from './list-copy.js'

const PATHS = ['a!b', 'a/\u{1F600}', 'a/\uFFFD', 'a/b/3', 'a0', 'ab']
const OBJECT = { etag: null, versionId: null, checksum: null, modifiedAtMs: 0 }

/** A published copy of `paths`, each with one byte more than the one before. */
async function publish(t: TestContext, paths = PATHS) {
  const directory = await temporaryDirectory(t)
  const files = join(directory, 'files')
  const copy = exampleCopy('flowers', { directory, path: files })
  const manifest = Manifest.create(directory, { keys: 'any' })
  for (const [sizeBytes, key] of paths.entries()) {
    mkdirSync(dirname(join(files, key)), { recursive: true })
    writeFileSync(join(files, key), 'x'.repeat(sizeBytes))
    manifest.add([{ ...OBJECT, key, sizeBytes }])
    manifest.finishObject(manifest.find(key)!.id, 'size', null)
  }
  manifest.writeSetting('listing', JSON.stringify({ version: copy.version }))
  return { copy, files, manifest }
}

test('the manifest of a ready copy lists what its folder holds, in the same order', async (t) => {
  const { copy, files, manifest } = await publish(t)
  await manifest.finish()
  const withoutTimes = (listed: { readonly path: string; readonly size: number }) => [
    listed.path,
    listed.size,
  ]
  const found = listCopy(copy, files)!.files
  assert.equal(found.count, PATHS.length)
  assert.deepEqual(
    found.list().map(withoutTimes),
    (await listFolder(files, 'follow')).files.list().map(withoutTimes),
  )
})

for (const [name, change] of Object.entries<Partial<Copy>>({
  'is being staged': { state: 'staging' },
  'has another version': { version: 'other' },
  'is one stripe': { stripe: { index: 0, nodes: ['a', 'b'] } },
  'has a manifest elsewhere': { directory: '/none' },
}))
  test(`the folder of a copy is looked at if the copy ${name}`, async (t) => {
    const { copy, files, manifest } = await publish(t)
    await manifest.finish()
    assert.equal(listCopy({ ...copy, ...change }, files), undefined)
  })

test('the folder of a copy is looked at if an object is missing, and a folder in it always', async (t) => {
  const { copy, files, manifest } = await publish(t)
  manifest.add([{ ...OBJECT, key: 'later', sizeBytes: 1 }])
  await manifest.finish()
  assert.equal(listCopy(copy, files), undefined)
  const whole = await publish(t)
  await whole.manifest.finish()
  assert.equal(listCopy(whole.copy, join(whole.files, 'a')), undefined)
})

for (const key of ['../x', 'a/../x', 'a/..', '/x', 'a//b', 'a\\b', 'a\nb'])
  test(`the folder of a copy is looked at if its manifest has the key ${JSON.stringify(key)}`, async (t) => {
    const { copy, files, manifest } = await publish(t)
    manifest.add([{ ...OBJECT, key, sizeBytes: 1 }])
    manifest.finishObject(manifest.find(key)!.id, 'size', null)
    await manifest.finish()
    assert.equal(listCopy(copy, files), undefined)
  })

test('a file of a copy with other bytes than its manifest says is not read', async (t) => {
  const { copy, files, manifest } = await publish(t)
  await manifest.finish()
  writeFileSync(join(files, 'a0'), 'longer than it was')
  truncateSync(join(files, 'ab'), 1)
  const listing = listCopy(copy, files)
  const { table } = await indexSamples(files, { cacheFolder: undefined, listing, isReadLater: true })
  const reader = new SampleReader(files, table)
  const read: boolean[] = []
  reader.readAll(Uint32Array.from(PATHS.keys()), {
    place: (sample) => new Uint8Array(table.lengths[sample]!),
    done(sample, isRead) {
      read[sample] = isRead
    },
  })
  const names = PATHS.map((_, sample) => table.nameOf(sample))
  assert.deepEqual(
    names.filter((_, sample) => !read[sample]),
    ['a0', 'ab'],
  )
})
