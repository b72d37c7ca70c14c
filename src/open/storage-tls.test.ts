import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Config } from '../config/config.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { readOwnCertificate, readStorageTls } from './storage-tls.js'

test('a storage node shows the certificate of its agent, and a feed believes the authority of agents', async (t) => {
  const folder = await temporaryDirectory(t)
  const { cache } = await openExampleCache(t)
  const pathOf = (name: string) => join(folder, `${name}.pem`)
  for (const name of ['cert', 'key', 'ca']) writeFileSync(pathOf(name), name)
  const surround = (tls: Config['agent']['tls']) =>
    exampleSurroundings(cache, t.signal, {
      agent: {
        listen: { host: '127.0.0.1', port: 0 },
        admins: [],
        undeclaredBytesPerUser: 0,
        isPageEverywhere: false,
        tls,
      },
    })
  const own = { certFile: pathOf('cert'), keyFile: pathOf('key') }
  const context = surround({ ...own, caFile: pathOf('ca') })
  assert.deepEqual(await readOwnCertificate(context), { cert: 'cert', key: 'key' })
  assert.deepEqual(await readStorageTls(context), { ca: 'ca' })
  assert.deepEqual(await readStorageTls(surround(own)), { ca: undefined }, 'the authorities of the system')
  assert.deepEqual(await readStorageTls(surround(undefined)), { ca: undefined })
  await assert.rejects(readOwnCertificate(surround(undefined)), {
    code: 'CONFIG_INVALID',
    message: /dsc\.yaml has no agent\.tls/,
  })
  await assert.rejects(readStorageTls(surround({ ...own, caFile: pathOf('nothing') })), {
    code: 'CONFIG_INVALID',
    message: `agent.tls: cannot read ${pathOf('nothing')}`,
  })
})
