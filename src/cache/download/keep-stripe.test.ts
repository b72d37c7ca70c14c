import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readCopyManifest } from '../../manifest/read-copy-manifest.js'
import type { Dataset } from '../../model/dataset.js'
import { openMemorySource } from '../../testing/memory-source.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { filesDirectory } from '../cache-layout.js'
import { verifyCopy } from '../upkeep/verify-copy.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { publishCopy } from './publish-copy.js'

const dataset: Dataset = { name: 'd', source: 's3://bucket/', include: [], exclude: [] }
const NODES = ['a', 'b', 'c']
/** Byte order: "Z" before "a", U+FF5E before U+1F600, which UTF-16 order would put the other way round. */
const KEYS = ['Z', 'a', 'b', 'c', 'd', 'e', '\uff5e', '\u{1f600}']
const OBJECTS = Object.fromEntries(KEYS.map((key, at) => [key, 'x'.repeat(1000 * (at + 1))]))

async function list(context: TestContext, index: number, count: number) {
  const copyDirectory = join(await temporaryDirectory(context), 'copy')
  const source = openMemorySource(OBJECTS)
  const stripe = { index, nodes: NODES.slice(0, count) }
  const listing = await listIntoManifest({ source, dataset, copyDirectory, stripe })
  return { source, copyDirectory, listing, stripe }
}

test('stripes share the version of the whole, and their sizes add up to it', async (context) => {
  const whole = await listIntoManifest({
    source: openMemorySource(OBJECTS),
    dataset,
    copyDirectory: join(await temporaryDirectory(context), 'copy'),
  })
  const stripes = await Promise.all([0, 1, 2].map((index) => list(context, index, 3)))
  const listings = stripes.map(({ listing }) => listing)
  assert.deepEqual(new Set(listings.map(({ version }) => version)), new Set([whole.version]))
  assert.deepEqual(
    listings.map(({ files }) => files),
    [3, 3, 2],
  )
  assert.equal(
    listings.reduce((sum, { contentBytes }) => sum + contentBytes, 0),
    whole.contentBytes,
  )
  for (const { neededBytes, neededInodes } of listings) {
    assert.ok(neededBytes < whole.neededBytes, 'only the share is asked for')
    assert.ok(neededInodes < whole.neededInodes)
  }
})

test('a stripe has the objects i with i mod N = k in byte order, and is complete without the others', async (context) => {
  const { source, copyDirectory, stripe } = await list(context, 1, 2)
  const { signal } = new AbortController()
  const downloaded = await downloadFiles({ source, copyDirectory, signal })
  assert.deepEqual(downloaded.verifiedBy, { 'etag-md5': 4 })
  assert.deepEqual(readdirSync(filesDirectory(copyDirectory)).sort(), ['a', 'c', 'e', '\u{1f600}'].sort())
  const finalDirectory = join(await temporaryDirectory(context), 'd', 'final')
  await publishCopy({ root: '/', copyDirectory, finalDirectory })
  const manifest = readCopyManifest(finalDirectory)
  assert.equal(manifest?.isComplete, true)
  assert.deepEqual(manifest?.stripe, stripe, 'a lost record can be made again')
  const verified = await verifyCopy({ copyDirectory: finalDirectory, signal })
  assert.deepEqual([verified.checkedFiles, verified.damages], [4, []])
})

test('a listing that was kept is used again for the same stripe and version only', async (context) => {
  const { source, copyDirectory, listing, stripe } = await list(context, 0, 3)
  source.objects.set('new', Buffer.from('new'))
  const again = (changes: object) => listIntoManifest({ source, dataset, copyDirectory, stripe, ...changes })
  assert.deepEqual(await again({}), listing)
  assert.deepEqual(await again({ version: listing.version }), listing)
  const other = await again({ version: 'another' })
  assert.notEqual(other.version, listing.version)
  source.objects.delete('new')
  assert.deepEqual(await again({}), other)
  assert.equal((await again({ isRelisted: true })).version, listing.version)
  assert.equal((await again({ stripe: { index: 1, nodes: NODES } })).files, 3)
})
