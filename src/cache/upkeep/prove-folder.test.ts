import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Manifest } from '../../manifest/manifest.js'
import { openS3Source } from '../../sources/s3/s3-source.js'
import type { Source } from '../../sources/source.js'
import { startCountingStore } from '../../testing/counting-store.js'
import { openMemorySource } from '../../testing/memory-source.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { filesDirectory } from '../cache-layout.js'
import { listIntoManifest } from '../download/list-into-manifest.js'
import { proveFolder } from './prove-folder.js'

const signal = new AbortController().signal
const GOOD = 'what the source holds'
const DAMAGED = 'what the source HOLDS'
const IS_DAMAGED = { code: 'COPY_DAMAGED', message: /a\.txt has another checksum$/ }
Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test-secret' })

/** Verifies a folder with this content against the source. */
async function prove(context: TestContext, source: Source, content: string) {
  const copyDirectory = join(await temporaryDirectory(context), 'copy')
  const dataset = { name: 'found', source: 's3://bucket/data/', include: [], exclude: [] }
  await listIntoManifest({ source, dataset, copyDirectory, signal })
  const folder = filesDirectory(copyDirectory)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'a.txt'), content)
  await proveFolder({ source, copyDirectory, folder, signal })
  const manifest = Manifest.open(copyDirectory)
  try {
    return manifest.find('a.txt')?.verifiedBy
  } finally {
    manifest.close()
  }
}

async function openStore(context: TestContext, options: Parameters<typeof startCountingStore>[1] = {}) {
  const store = await startCountingStore(new Map([['data/a.txt', Buffer.from(GOOD)]]), options)
  const source = openS3Source({
    ...{ name: 'found', source: 's3://bucket/data/', include: [], exclude: [] },
    ...{ endpoint: store.endpoint, region: 'us-east-1', pathStyle: true },
  })
  context.after(async () => {
    await source.close()
    await store.close()
  })
  return { store, source }
}

test('an etag that is the MD5 proves a file, and its object is not asked for', async (context) => {
  const { store, source } = await openStore(context)
  assert.equal(await prove(context, source, GOOD), 'etag-md5')
  assert.equal(store.requests(), 1)
  await assert.rejects(prove(context, source, DAMAGED), IS_DAMAGED)
})

test('an etag that only looks like an MD5 refuses no file: its size counts', async (context) => {
  const { source } = await openStore(context, { isKmsEncrypted: true })
  assert.equal(await prove(context, source, GOOD), 'own-sha256')
  const longer = { code: 'COPY_DAMAGED', message: /a\.txt has 22 bytes instead of 21$/ }
  await assert.rejects(prove(context, source, `${GOOD}!`), longer)
})

test('where the source keeps another checksum, that one counts', async (context) => {
  const { source } = await openStore(context, { isKmsEncrypted: true, hasChecksums: true })
  assert.equal(await prove(context, source, GOOD), 'crc32')
  await assert.rejects(prove(context, source, DAMAGED), IS_DAMAGED)
})

test('a checksum that was listed proves a file', async (context) => {
  const memory = openMemorySource({ 'a.txt': GOOD })
  const value = createHash('sha256').update(GOOD).digest('base64')
  const source: Source = {
    ...memory,
    async *list(options) {
      for await (const page of memory.list(options))
        yield page.map((object) => ({
          ...object,
          etag: 'named-otherwise',
          checksum: { algorithm: 'sha256', value },
        }))
    },
  }
  assert.equal(await prove(context, source, GOOD), 'sha256')
})
