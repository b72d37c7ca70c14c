import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder, writeSamples } from '../testing/sample-folder.js'

const BIN = join(import.meta.dirname, '../../bin/dsc.js')

test('a storage node whose port is in use says so and ends', async (context) => {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), 3, () => 10)
  const other = createServer().listen(0, '127.0.0.1')
  context.after(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const words = ['feed', 'storage', join(folder, 'samples'), '--listen', `127.0.0.1:${port}`]
  const environment = { ...process.env, XDG_CACHE_HOME: folder }
  const ended = spawnSync(process.execPath, [BIN, ...words], {
    env: environment,
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  assert.equal(ended.signal, null, 'it had to be killed')
  assert.equal(ended.status, 2)
  assert.match(ended.stderr.toString(), /EADDRINUSE/)
})
