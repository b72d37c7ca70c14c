import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { listFolder, measureFiles } from './list-folder.js'

const PATHS = ['a!b', 'a-b/1', 'a.b', 'a/2', 'a/b/3', 'a/b.c', 'a0', 'ab', 'ä/4', 'Z']

test('files come in byte order of their whole paths, through folders and links to folders', async (t) => {
  const root = await temporaryDirectory(t)
  for (const [i, path] of PATHS.entries()) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), 'x'.repeat(i))
  }
  symlinkSync('a', join(root, 'a,'))
  const linked = ['2', 'b/3', 'b.c'].map((path) => [`a,/${path}`, PATHS.indexOf(`a/${path}`)] as const)
  const expected = [...PATHS.map((path, i) => [path, i] as const), ...linked]
    .map(([path, size]) => ({ path: Buffer.from(path).toString('latin1'), size }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
  for (const measure of [undefined, async (base: string, paths: string) => measureFiles(base, paths)]) {
    const { files } = await listFolder(root, 'follow', measure)
    assert.deepEqual(
      files.list().map(({ path, size }) => ({ path, size })),
      expected,
    )
  }
})

test('each file of thousands has its own size, though sizes are asked for in parts', async (t) => {
  const root = join(await temporaryDirectory(t), 'ä')
  mkdirSync(root)
  const names = Array.from({ length: 4096 + 2 }, (_, i) => String(10_000 + i))
  for (const [i, name] of names.entries()) writeFileSync(join(root, name), 'x'.repeat(i % 7))
  const { files } = await listFolder(root, 'follow', async (base, paths) => measureFiles(base, paths))
  assert.deepEqual(
    files.list().map(({ path, size }) => [path, size]),
    names.map((name, i) => [name, i % 7]),
  )
})
