import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Dataset } from '../../model/dataset.js'
import { HeldFolder } from '../../platform/held-folder.js'
import { type ListedObject, ListingDisorder, type Source } from '../../sources/source.js'
import { openMemorySource } from '../../testing/memory-source.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { listIntoManifest } from './list-into-manifest.js'

const dataset: Dataset = { name: 'd', source: 's3://bucket/', include: [], exclude: [] }

async function list(
  context: { after: (done: () => Promise<void>) => void },
  objects: Record<string, string>,
  rest: Partial<Dataset> = {},
) {
  const copyDirectory = join(await temporaryDirectory(context as never), 'copy')
  const source = openMemorySource(objects)
  const work = listIntoManifest({ source, dataset: { ...dataset, ...rest }, copyDirectory })
  return { work, source, copyDirectory }
}

for (const key of [
  '../evil',
  '/etc/passwd',
  'a\0b',
  'a\\b',
  'a//b',
  'full/',
  'n'.repeat(300),
  'a/./b',
  'a\nb',
]) {
  test(`listing refuses the key ${JSON.stringify(key.slice(0, 20))} by name and writes no file`, async (context) => {
    const { work, copyDirectory } = await list(context, { good: 'x', [key]: 'evil' })
    await assert.rejects(work, (error: Error & { code?: string; hint?: string }) => {
      assert.equal(error.code, 'KEY_UNSAFE')
      assert.ok(error.message.includes(JSON.stringify(key)), error.message)
      assert.match(error.hint ?? '', /exclude/)
      return true
    })
    assert.deepEqual(readdirSync(join(copyDirectory, 'files')), [])
  })

  test(`listing goes on without ${JSON.stringify(key.slice(0, 20))} when exclude names it`, async (context) => {
    const { work } = await list(context, { good: 'x', [key]: 'evil' }, { exclude: [key] })
    assert.equal((await work).files, 1)
  })
}

test('listing into a folder that somebody removed while it was held fails at once', async (context) => {
  const path = join(await temporaryDirectory(context), 'copy')
  mkdirSync(path)
  const held = HeldFolder.find(path)!
  context.after(() => held.close())
  rmdirSync(path)
  const source = openMemorySource({ a: '1' })
  await assert.rejects(listIntoManifest({ source, dataset, copyDirectory: held.path }), { code: 'ENOENT' })
})

test('listing refuses a key that is also the folder of another', async (context) => {
  const { work } = await list(context, { 'x/a': '1', 'x/a-': '2', 'x/a/b': '3' })
  await assert.rejects(work, {
    code: 'KEY_UNSAFE',
    message: /"x\/a" is an object and also the folder of "x\/a\/b"/,
  })
})

test('listing shows a few of many refused keys and counts the rest', async (context) => {
  const objects = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`../${index}`, 'x']))
  await assert.rejects((await list(context, objects)).work, { code: 'KEY_UNSAFE', message: /and 45 more/ })
})

test('listing skips the empty objects that consoles make for folders, and counts them', async (context) => {
  const { work } = await list(context, { '': '', 'a/': '', 'a/b': 'x' })
  const { files, skippedFolderMarkers } = await work
  assert.deepEqual({ files, skippedFolderMarkers }, { files: 1, skippedFolderMarkers: 2 })
})

test('listing of nothing says why there is nothing', async (context) => {
  await assert.rejects((await list(context, {})).work, { code: 'SOURCE_EMPTY', message: /no objects/ })
  await assert.rejects((await list(context, { 'a/': '' })).work, {
    code: 'SOURCE_EMPTY',
    message: /1 folder marker$/,
  })
  await assert.rejects((await list(context, { a: '1' }, { include: ['b'] })).work, {
    code: 'SOURCE_EMPTY',
    message: /1 object listed, none of which passes/,
  })
})

test('the version depends on the objects and on nothing else', async (context) => {
  const first = await (await list(context, { a: '1', b: '2' })).work
  const same = await (await list(context, { b: '2', a: '1', c: '3' }, { exclude: ['c'] })).work
  const other = await (await list(context, { a: '1', b: '3' })).work
  assert.equal(same.version, first.version)
  assert.notEqual(other.version, first.version)
})

test('a complete listing is used again; one of another definition is not', async (context) => {
  const { work, source, copyDirectory } = await list(context, { a: '1', b: '2' })
  const first = await work
  source.objects.set('c', Buffer.from('3'))
  assert.deepEqual(await listIntoManifest({ source, dataset, copyDirectory }), first)
  const other = { ...dataset, exclude: ['b'] }
  assert.equal((await listIntoManifest({ source, dataset: other, copyDirectory })).files, 2)
})

test('a listing that broke off is thrown away', async (context) => {
  const copyDirectory = join(await temporaryDirectory(context), 'copy')
  const source = openMemorySource(
    Object.fromEntries(Array.from({ length: 2500 }, (_, index) => [`${index}`, ''])),
  )
  const stop = new AbortController()
  const broken = listIntoManifest({
    source,
    dataset,
    copyDirectory,
    signal: stop.signal,
    onProgress: () => stop.abort(),
  })
  await assert.rejects(broken, { code: 'INTERRUPTED' })
  assert.ok(existsSync(join(copyDirectory, 'manifest.db')))
  assert.equal((await listIntoManifest({ source, dataset, copyDirectory })).files, 2500)
})

test('a listing that turns out to be out of order is thrown away and made again, page by page', async (context) => {
  const { source } = await list(context, { a: '1', b: '2' })
  const asked: (boolean | undefined)[] = []
  const disordered: Source = {
    ...source,
    async *list(options) {
      asked.push(options.isSequential)
      for await (const page of source.list({})) yield page
      if (!options.isSequential) throw new ListingDisorder('b came after c')
    },
  }
  const copyDirectory = join(await temporaryDirectory(context as never), 'copy')
  const listing = await listIntoManifest({ source: disordered, dataset, copyDirectory })
  assert.equal(listing.files, 2)
  assert.deepEqual(asked, [undefined, true])
})

test('the version does not depend on the order in which objects are listed', async (context) => {
  const { work, source } = await list(context, { 'a/1': '1', b: '2', 'é/日': '3', '😀': '4', '\uffff': '5' })
  const backwards: Source = {
    ...source,
    async *list() {
      const objects: ListedObject[] = []
      for await (const page of source.list({})) objects.push(...page)
      for (const object of objects.reverse()) yield [object]
    },
  }
  const copyDirectory = join(await temporaryDirectory(context as never), 'copy')
  const listing = await listIntoManifest({ source: backwards, dataset, copyDirectory })
  assert.equal(listing.version, (await work).version)
})
