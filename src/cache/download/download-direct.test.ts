import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs, { constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openFileSource } from '../../sources/file/file-source.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'

const MIB = 1024 * 1024
const BIG = randomBytes(40 * MIB + 777)
const { signal } = new AbortController()

for (const { name, cacheMemoryBytes, isReadWhileComing = false, isDirect } of [
  { name: 'past the page cache if it is large', cacheMemoryBytes: 100 * MIB, isDirect: true },
  { name: 'through the page cache if memory holds it', cacheMemoryBytes: 1000 * MIB, isDirect: false },
  {
    name: 'through the page cache if it is read during the download',
    cacheMemoryBytes: 0,
    isReadWhileComing: true,
    isDirect: false,
  },
])
  test(`a download is written ${name}`, async (context) => {
    const folder = await temporaryDirectory(context)
    const from = join(folder, 'from')
    mkdirSync(from)
    writeFileSync(join(from, 'big'), BIG)
    const dataset = { name: 'd', source: `file://${from}/`, include: [], exclude: [] }
    const source = openFileSource(dataset)
    const copyDirectory = join(folder, 'copy')
    await listIntoManifest({ source, dataset, copyDirectory, signal })
    const opened = watchDirect(context)
    await downloadFiles({ source, copyDirectory, threads: 0, cacheMemoryBytes, isReadWhileComing, signal })
    assert.equal(opened.some(Boolean), isDirect)
    assert.ok(readFileSync(join(copyDirectory, 'files/big')).equals(BIG))
  })

/** For each file that is opened to write until the test ends: whether that is past the page cache. */
function watchDirect(context: TestContext): readonly boolean[] {
  const opened: boolean[] = []
  const { openSync } = fs
  context.mock.method(fs, 'openSync', (path: string, flags: number, mode?: number) => {
    if (typeof flags === 'number') opened.push((flags & constants.O_DIRECT) !== 0)
    return openSync(path, flags, mode)
  })
  syncBuiltinESMExports()
  context.after(() => {
    context.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return opened
}
