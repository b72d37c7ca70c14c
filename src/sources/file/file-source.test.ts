import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { testSourceContract } from '../source.contract.js'
import type { FetchRequest, ListedObject } from '../source.js'
import { openFileSource } from './file-source.js'

function openAt(directory: string) {
  return openFileSource({ name: 'd', source: `${pathToFileURL(directory)}/`, include: [], exclude: [] })
}

testSourceContract('file', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  return {
    source: openAt(directory),
    async put(key, body) {
      mkdirSync(dirname(join(directory, key)), { recursive: true })
      writeFileSync(join(directory, key), body)
    },
    remove: async (key) => rmSync(join(directory, key)),
    close: async () => rmSync(directory, { recursive: true }),
  }
})

test('a file source follows symlinks inside its directory and none that lead out or round', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const root = join(directory, 'root')
  mkdirSync(join(root, 'real'), { recursive: true })
  writeFileSync(join(root, 'real/x'), 'x')
  writeFileSync(join(directory, 'secret'), 'secret')
  symlinkSync('real', join(root, 'alias'))
  symlinkSync('real/x', join(root, 'file-alias'))
  symlinkSync('../secret', join(root, 'out'))
  symlinkSync('..', join(root, 'up'))
  symlinkSync('..', join(root, 'real/round'))
  symlinkSync('nowhere', join(root, 'broken'))
  const keys: string[] = []
  for await (const page of openAt(root).list({})) keys.push(...page.map((object) => object.key))
  assert.deepEqual(keys.sort(), ['alias/x', 'file-alias', 'real/x'])
})

test('a missing directory is SOURCE_NOT_FOUND', async () => {
  await assert.rejects(openAt('/no/such/directory').list({})[Symbol.asyncIterator]().next(), {
    code: 'SOURCE_NOT_FOUND',
  })
})

test('a file that is written anew with as many bytes is said so, not "expected 3 bytes, found 3"', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'a')
  writeFileSync(path, 'old')
  const source = openAt(directory)
  const { value } = await source.list({})[Symbol.asyncIterator]().next()
  const [listed] = value as readonly ListedObject[]
  writeFileSync(path, 'new')
  utimesSync(path, 1, 2)
  const fetcher = await source.openFetcher({ connections: 1 })
  const request: FetchRequest = { ...listed!, offset: 0, length: 3, stallTimeoutMs: 1000, sink: () => 0 }
  await assert.rejects(fetcher.fetch(request), {
    code: 'SOURCE_CHANGED',
    message: /written since it was listed, last at 1970-01-01T00:00:02/,
  })
  await fetcher.close()
})

test('a file whose name is not UTF-8 is refused by name', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  context.after(() => rmSync(directory, { recursive: true }))
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/caf`), Buffer.from([0xe9])]), 'x')
  const listing = openAt(directory).list({})[Symbol.asyncIterator]()
  await assert.rejects(listing.next(), { code: 'KEY_UNSAFE', message: /caf\ufffd: its name is not UTF-8/ })
})

test('a file source says what it leaves out, and why', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  context.after(() => rmSync(directory, { recursive: true }))
  writeFileSync(join(directory, 'x'), 'x')
  symlinkSync('/usr', join(directory, 'out'))
  symlinkSync('nowhere', join(directory, 'broken'))
  const leftOut: string[] = []
  for await (const _ of openAt(directory).list({
    onLeftOut: (path, why) => leftOut.push(`${path}: ${why}`),
  }));
  assert.deepEqual(leftOut, [
    'broken: the link leads nowhere',
    'out: the link leads out of the folder, to /usr',
  ])
})

test('one file is a source by itself', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  context.after(() => rmSync(directory, { recursive: true }))
  writeFileSync(join(directory, 'a.tar'), 'alone')
  const source = openAt(join(directory, 'a.tar'))
  const objects: ListedObject[] = []
  for await (const page of source.list({})) objects.push(...page)
  assert.deepEqual(
    objects.map(({ key }) => key),
    ['a.tar'],
  )
  let text = ''
  const fetcher = await source.openFetcher({ connections: 1 })
  await fetcher.fetch({
    ...objects[0]!,
    offset: 0,
    length: 5,
    stallTimeoutMs: 5000,
    sink: (chunk) => {
      text += Buffer.from(chunk).toString()
      return 0
    },
  })
  assert.equal(text, 'alone')
})
