import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { QuickFile } from '../platform/quick-file.js'
import { openToSend } from '../platform/send-rule.js'
import { exampleCopy } from '../testing/example-copies.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { waitFor } from '../testing/world.js'
import { markAdopted, placeOf } from './adopted-folder.js'
import { copyDirectory, filesDirectory } from './cache-layout.js'
import { openCopyFile, openCopyFileHere, sampleRuleOf } from './open-copy-file.js'

async function makeCopy(context: TestContext) {
  const folder = await temporaryDirectory(context)
  const root = join(folder, 'cache')
  const copy = { ...exampleCopy('flowers'), version: 'a'.repeat(64) }
  const directory = copyDirectory(root, copy)
  const files = filesDirectory(directory)
  mkdirSync(files, { recursive: true })
  writeFileSync(join(files, 'rose.jpg'), 'rose')
  const outside = join(folder, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'rose.jpg'), 'secret', { mode: 0o600 })
  return { root, copy, directory, files, outside, path: join(files, 'rose.jpg') }
}

async function read(...asked: Parameters<typeof openCopyFile>): Promise<string> {
  const file = await openCopyFile(...asked)
  try {
    const buffer = Buffer.alloc(100)
    return buffer.toString('utf8', 0, await file.read(buffer, 0))
  } finally {
    await file.close()
  }
}

/** Whether files are now opened within an event-loop turn. */
function answersAtOnce(path: string): boolean {
  const file = QuickFile.openHere(path)
  file?.closeHere()
  return file !== undefined
}

const FOREIGN = { code: 'CACHE_ROOT_INVALID' }

test('a file of a copy is opened, also where the root is reached by a link', async (context) => {
  const { root, copy, path } = await makeCopy(context)
  assert.equal(await read(root, copy, path), 'rose')
  const linked = `${root}-linked`
  symlinkSync(root, linked)
  assert.equal(await read(linked, copy, path.replace(root, linked)), 'rose')
  await assert.rejects(read(root, copy, `${path}.gone`), { code: 'ENOENT' })
})

for (const { swapped, of } of [
  { swapped: 'file', of: (made: Made) => made.path },
  { swapped: 'folder of files', of: (made: Made) => made.files },
  { swapped: 'folder of the copy', of: (made: Made) => made.directory },
]) {
  test(`a link in the place of the ${swapped} leads nobody outside`, async (context) => {
    const made = await makeCopy(context)
    const { root, copy, outside, path, directory } = made
    const place = of(made)
    if (place === directory) mkdirSync(join(outside, 'files'))
    if (place === directory) renameSync(join(outside, 'rose.jpg'), join(outside, 'files', 'rose.jpg'))
    renameSync(place, `${root}-moved`)
    symlinkSync(place === path ? join(outside, 'rose.jpg') : outside, place)
    await assert.rejects(read(root, copy, path), FOREIGN)
    await waitFor('disks that answer at once', () => answersAtOnce(path))
    assert.equal(openCopyFileHere(root, copy, path), undefined)
    await assert.rejects(read(root, { ...copy, origin: 'local', path: outside }, path), FOREIGN)
  })
}

test('an adopted folder is read if everybody may read it, or its owner had it adopted', async (context) => {
  const { root, copy, outside, files, path } = await makeCopy(context)
  const adopted = { ...copy, origin: 'local' as const, path: outside }
  renameSync(files, `${files}-moved`)
  symlinkSync(outside, files)
  await assert.rejects(read(root, adopted, path), FOREIGN)
  assert.ok(markAdopted(placeOf({ root }, adopted)))
  assert.equal(await read(root, adopted, path), 'secret')
  await assert.rejects(read(root, { ...adopted, copyId: 'another' }, path), FOREIGN)
  chmodSync(join(outside, 'rose.jpg'), 0o644)
  assert.equal(await read(root, { ...adopted, copyId: 'another' }, path), 'secret')
})

test('a pipe in the place of a file is waited for by nobody', async (context) => {
  const { root, copy, path } = await makeCopy(context)
  execFileSync('mkfifo', [`${path}.pipe`])
  await assert.rejects(read(root, copy, `${path}.pipe`), FOREIGN)
})

type Made = Awaited<ReturnType<typeof makeCopy>>

test('of a copy’s samples, nothing is sent that belongs to another copy', async (context) => {
  const { root, copy, files, outside, path } = await makeCopy(context)
  const linked = `${root}-linked`
  symlinkSync(root, linked)
  const opens = (where: string, wanted: string) => {
    const rule = sampleRuleOf(where, { ...copy, path: filesDirectory(copyDirectory(where, copy)) })
    const descriptor = openToSend(wanted, rule)
    if (descriptor !== undefined) closeSync(descriptor)
    return descriptor !== undefined
  }
  assert.deepEqual([opens(root, path), opens(linked, path)], [true, true])
  const other = join(root, 'record.db')
  writeFileSync(other, 'secret')
  assert.deepEqual([opens(root, other), opens(root, `${files}/../../../../record.db`)], [false, false])
  renameSync(files, `${files}-moved`)
  symlinkSync(outside, files)
  assert.equal(opens(root, path), false)
  const adopted = { ...copy, origin: 'local' as const, path: outside }
  assert.deepEqual(sampleRuleOf(root, adopted), { below: [], publicBelow: outside })
})
