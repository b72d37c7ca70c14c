import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDscError } from '../failure/dsc-error.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { readRegularFile, requireRegularFile } from './regular-file.js'

test('readRegularFile reads a file, and leaves everything else alone', async (t) => {
  const folder = await temporaryDirectory(t)
  const place = (name: string) => join(folder, name)
  writeFileSync(place('file'), 'text')
  assert.equal(readRegularFile(place('file'), { maxBytes: 4 }), 'text')
  requireRegularFile(place('file'))
  requireRegularFile(place('nothing'))
  assert.throws(() => readRegularFile(place('nothing'), { maxBytes: 4 }), { code: 'ENOENT' })
  assert.throws(
    () => readRegularFile(place('file'), { maxBytes: 3 }),
    /expected a regular file of at most 3 bytes, found 4/,
  )

  symlinkSync(place('file'), place('link'))
  symlinkSync(place('nothing'), place('dangling'))
  mkdirSync(place('folder'))
  execFileSync('mkfifo', [place('pipe')]) // from coreutils
  const server = createServer().listen(place('socket'))
  t.after(() => server.close())
  for (const [name, found] of Object.entries({
    link: 'a symbolic link',
    dangling: 'a symbolic link',
    folder: 'a folder',
    pipe: 'a pipe',
    socket: 'a socket',
  }))
    for (const look of [requireRegularFile, (path: string) => readRegularFile(path, { maxBytes: 9 })])
      assert.throws(
        () => look(place(name)),
        (error) => isDscError(error, 'CACHE_ROOT_INVALID') && error.message.endsWith(`found ${found}`),
        name,
      )
})
