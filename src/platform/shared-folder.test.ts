import assert from 'node:assert/strict'
import { chmod, mkdir, rmdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { HeldFolder } from './held-folder.js'
import { createSharedFile, makeFolder, restoreUmask, shareLikeFolder } from './shared-folder.js'

let umask: number
beforeEach(() => {
  umask = process.umask(0o077)
})
afterEach(() => {
  process.umask(umask)
})

for (const { folder, file, made } of [
  { folder: 0o755, file: 0o644, made: 0o755 },
  { folder: 0o700, file: 0o644, made: 0o700 },
  { folder: 0o2775, file: 0o664, made: 0o775 },
  { folder: 0o777, file: 0o666, made: 0o777 },
  { folder: 0o1777, file: 0o644, made: 0o755 },
]) {
  test(`in a folder of mode ${folder.toString(8)} a shared file is ${file.toString(8)} and a folder ${made.toString(8)}, whatever the umask`, async (context) => {
    const directory = await temporaryDirectory(context)
    await chmod(directory, folder)
    createSharedFile(join(directory, 'file'))
    assert.equal((await stat(join(directory, 'file'))).mode & 0o777, file)
    shareLikeFolder(directory)
    await mkdir(join(directory, 'folder'))
    assert.equal((await stat(join(directory, 'folder'))).mode & 0o777, made)
    restoreUmask()
    assert.equal(process.umask(), 0o077)
  })
}

test('createSharedFile leaves a file as it is', async (context) => {
  const path = join(await temporaryDirectory(context), 'file')
  await writeFile(path, 'kept')
  createSharedFile(path)
  assert.equal((await stat(path)).size, 4)
})

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
