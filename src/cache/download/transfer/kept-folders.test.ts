import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { HeldFolder } from '../../../platform/held-folder.js'
import { countDescriptors } from '../../../testing/open-descriptors.js'
import { temporaryDirectory } from '../../../testing/temporary-directory.js'
import { KeptFolders } from './kept-folders.js'

async function makeFolders(context: TestContext) {
  const directory = await temporaryDirectory(context)
  const held = HeldFolder.find(directory)!
  const folders = new KeptFolders()
  context.after(() => {
    folders.close()
    held.close()
  })
  const write = (name: string) =>
    folders.on(join(held.path, name), (path) => writeFileSync(path, name, { flag: 'wx' }))
  return { directory, folders, write }
}

test('files of many folders are made, each where it belongs', async (context) => {
  const { directory, write } = await makeFolders(context)
  const names = Array.from({ length: 300 }, (_, index) => `files/${index % 100}/deep/${index}`)
  for (const name of names) write(name)
  for (const name of names) assert.ok(existsSync(join(directory, name)), name)
})

test('no more than a few descriptors stay open, and none after the end', async (context) => {
  const { directory, folders, write } = await makeFolders(context)
  const before = countDescriptors(directory)
  for (let index = 0; index < 100; index += 1) write(`files/${index}/a`)
  assert.ok(countDescriptors(directory) <= before + 32)
  folders.close()
  assert.equal(countDescriptors(directory), before)
})

test('a folder that was removed is made anew', async (context) => {
  const { directory, write } = await makeFolders(context)
  write('files/a/1')
  rmSync(join(directory, 'files'), { recursive: true })
  write('files/a/2')
  assert.deepEqual(readdirSync(join(directory, 'files/a')), ['2'])
})

test('a link in the place of a folder is never followed', async (context) => {
  const { directory, write } = await makeFolders(context)
  mkdirSync(join(directory, 'foreign'))
  mkdirSync(join(directory, 'files'))
  symlinkSync(join(directory, 'foreign'), join(directory, 'files/a'))
  assert.throws(() => write('files/a/1'), { code: 'CACHE_ROOT_INVALID' })
  write('files/b/1')
  renameSync(join(directory, 'files/b'), join(directory, 'files/old'))
  symlinkSync(join(directory, 'foreign'), join(directory, 'files/b'))
  write('files/b/2')
  assert.deepEqual(readdirSync(join(directory, 'foreign')), [])
})
