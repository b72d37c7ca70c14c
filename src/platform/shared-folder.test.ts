import assert from 'node:assert/strict'
import { chmod, mkdir, rmdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { HeldFolder } from './held-folder.js'
import { makeFolder, readableLikeFolder, restoreUmask } from './shared-folder.js'

let umask: number
beforeEach(() => {
  umask = process.umask(0o077)
})
afterEach(() => {
  process.umask(umask)
})

for (const { folder, made, mask } of [
  { folder: 0o755, made: 0o755, mask: 0o077 },
  { folder: 0o700, made: 0o700, mask: 0o077 },
  { folder: 0o750, made: 0o750, mask: 0o077 },
  { folder: 0o2775, made: 0o755, mask: 0o002 },
]) {
  test(`in a folder of mode ${folder.toString(8)} another is made with ${made.toString(8)} under umask ${mask.toString(8)}`, async (context) => {
    const directory = await temporaryDirectory(context)
    await chmod(directory, folder)
    process.umask(mask)
    readableLikeFolder(directory)
    await mkdir(join(directory, 'folder'))
    assert.equal((await stat(join(directory, 'folder'))).mode & 0o777, made)
    restoreUmask()
    assert.equal(process.umask(), mask)
  })
}

test('makeFolder makes missing parents, and a folder that is there is no error', async (context) => {
  const path = join(await temporaryDirectory(context), 'a/b/c')
  makeFolder(path)
  makeFolder(path)
  assert.ok((await stat(path)).isDirectory())
})

test('makeFolder ends where a parent exists and takes no folders', () => {
  assert.throws(() => makeFolder('/proc/dsc/cache'), { code: 'ENOENT' })
})

test('makeFolder ends in a folder that is held and was removed', async (context) => {
  const path = join(await temporaryDirectory(context), 'gone')
  makeFolder(path)
  const held = HeldFolder.find(path)!
  context.after(() => held.close())
  await rmdir(path)
  for (const inside of [`${held.path}/files`, Buffer.from(`${held.path}/a/b`)])
    assert.throws(() => makeFolder(inside), { code: 'ENOENT' })
})

test('makeFolder says what stands in the way', async (context) => {
  const path = join(await temporaryDirectory(context), 'file')
  await writeFile(path, '')
  assert.throws(() => makeFolder(path), { code: 'EEXIST' })
  assert.throws(() => makeFolder(join(path, 'folder')), { code: 'ENOTDIR' })
})
