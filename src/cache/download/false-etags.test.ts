import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { HeldFolder } from '../../platform/held-folder.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import type { Source } from '../../sources/source.js'
import { openMemorySource } from '../../testing/memory-source.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { repairCopy } from '../upkeep/repair-copy.js'
import { verifyCopy } from '../upkeep/verify-copy.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { publishCopy } from './publish-copy.js'

const signal = new AbortController().signal
const MIB = 1024 * 1024
const FACTS: ObjectFacts = { checksums: [], uploadPartBytes: null, isEtagMd5: true }
const FALSE = createHash('md5').update('another object').digest('hex')
const RIGHT = 'right'
const LARGE = randomBytes(32 * MIB)
const SMALL = LARGE.subarray(0, 12 * MIB)

interface Store {
  readonly objects: Readonly<Record<string, { readonly body: Buffer; readonly etag: string }>>
  /** Beside the etags. */
  readonly facts?: Partial<ObjectFacts>
  /** Changes bytes on their way. */
  readonly spoil?: (key: string, chunk: Buffer) => void
}

/** A store whose etags look like MD5; counts the bytes that it sends. */
function openStore({ objects, facts, spoil }: Store) {
  const bodies = Object.fromEntries(Object.entries(objects).map(([key, { body }]) => [key, body]))
  const held = openMemorySource(bodies)
  const told: ObjectFacts = { ...FACTS, ...facts }
  const sent = { bytes: 0 }
  const source: Source = {
    ...held,
    async *list(options) {
      for await (const page of held.list(options))
        yield page.map((object) => {
          const { etag } = objects[object.key]!
          return etag === RIGHT ? object : { ...object, etag }
        })
    },
    async openFetcher(options) {
      const fetcher = await held.openFetcher(options)
      return {
        ...fetcher,
        inspect: async () => told,
        fetch: (request) =>
          fetcher.fetch({
            ...request,
            etag: null,
            onFacts: () => request.onFacts?.(told),
            sink(bytes) {
              sent.bytes += bytes.length
              const chunk = Buffer.from(bytes)
              spoil?.(request.key, chunk)
              return request.sink(chunk)
            },
          }),
      }
    },
  }
  return { source, sent }
}

const large = (etag: string) => ({ large: { body: LARGE, etag } })
const small = (etag: string) => ({ small: { body: SMALL, etag } })
const flip = (_key: string, chunk: Buffer) => {
  chunk[77]! ^= 1
}
const inParts = (partBytes: number) => ({ uploadPartBytes: partBytes })

for (const { name, store, sentBytes } of [
  { name: 'of a large object', store: { objects: large(FALSE) }, sentBytes: 3 * LARGE.length },
  {
    name: 'of a large object that was uploaded in parts',
    store: { objects: large(`${FALSE}-2`), facts: inParts(16 * MIB) },
    sentBytes: 3 * LARGE.length,
  },
  {
    name: 'of a small object that was uploaded in parts',
    store: { objects: small(`${FALSE}-2`), facts: inParts(6 * MIB) },
    sentBytes: 3 * SMALL.length,
  },
  {
    name: 'of two large objects',
    store: { objects: { a: { body: LARGE, etag: FALSE }, b: { body: LARGE, etag: FALSE } } },
    sentBytes: 6 * LARGE.length,
  },
] as readonly { name: string; store: Store; sentBytes: number }[]) {
  test(`a false etag ${name} proves nothing once the same bytes have come again`, async (t) => {
    const copyDirectory = join(await temporaryDirectory(t), 'copy')
    const { source, sent } = openStore(store)
    const dataset = { name: 'd', source: 's3://d/', include: [], exclude: [] }
    await listIntoManifest({ source, dataset, copyDirectory, signal })
    const { verifiedBy } = await downloadFiles({ source, copyDirectory, signal })
    const names = Object.keys(store.objects)
    assert.deepEqual(verifiedBy, { 'own-sha256': names.length })
    assert.ok(sent.bytes <= sentBytes, `${sent.bytes} bytes were sent`)
    for (const key of names)
      assert.ok(readFileSync(join(copyDirectory, 'files', key)).equals(store.objects[key]!.body))
  })
}

for (const { name, store } of [
  {
    name: 'whose etag fails with other bytes each time',
    store: { objects: large(FALSE), spoil: (_key: string, chunk: Buffer) => void randomBytes(8).copy(chunk) },
  },
  {
    name: 'with the same flipped bit each time, where another etag was right',
    store: {
      objects: { ...large(RIGHT), a: { body: Buffer.from('first'), etag: RIGHT } },
      spoil: (key: string, chunk: Buffer) => void (key === 'large' && flip(key, chunk)),
    },
  },
  {
    name: 'with the same flipped bit each time, where it has a checksum',
    store: {
      objects: large(FALSE),
      facts: { checksums: [{ algorithm: 'sha256', value: sha256(LARGE), isComposite: false }] },
      spoil: flip,
    },
  },
  {
    name: 'in upload parts with the same flipped bit each time, where it has a checksum',
    store: {
      objects: large(`${FALSE}-2`),
      facts: {
        ...inParts(16 * MIB),
        checksums: [{ algorithm: 'sha256', value: `${sha256(sha256Parts(LARGE))}-2`, isComposite: true }],
      },
      spoil: flip,
    },
  },
  {
    name: 'of small upload parts that are other bytes each time',
    store: {
      objects: small(`${FALSE}-2`),
      facts: inParts(6 * MIB),
      spoil: (_key: string, chunk: Buffer) => void randomBytes(8).copy(chunk),
    },
  },
] as readonly { name: string; store: Store }[]) {
  test(`an object ${name} is refused`, async (t) => {
    const copyDirectory = join(await temporaryDirectory(t), 'copy')
    const { source } = openStore(store)
    const dataset = { name: 'd', source: 's3://d/', include: [], exclude: [] }
    await listIntoManifest({ source, dataset, copyDirectory, signal })
    await assert.rejects(downloadFiles({ source, copyDirectory, signal }), { code: 'CHECKSUM_MISMATCH' })
  })
}

test('a repair takes an object whose etag is false by the digest in the manifest', async (t) => {
  const root = await temporaryDirectory(t)
  const [copyDirectory, finalDirectory, drafts] = ['copy', 'final', 'drafts'].map((name) => join(root, name))
  const body = Buffer.from('a small object')
  const { source } = openStore({ objects: { a: { body, etag: FALSE } } })
  const dataset = { name: 'd', source: 's3://d/', include: [], exclude: [] }
  await listIntoManifest({ source, dataset, copyDirectory: copyDirectory!, signal })
  await downloadFiles({ source, copyDirectory: copyDirectory!, signal })
  await publishCopy({ root, copyDirectory: copyDirectory!, finalDirectory: finalDirectory! })
  rmSync(join(finalDirectory!, 'files/a'))
  mkdirSync(drafts!)
  const hold = (path: string) => HeldFolder.find(path)!
  const files = hold(join(finalDirectory!, 'files'))
  const folders = { directory: hold(finalDirectory!), files, bench: hold(drafts!) }
  const { damages } = await verifyCopy({ copyDirectory: finalDirectory!, signal })
  const repair = await repairCopy({ source, ...folders, damages, signal })
  for (const folder of Object.values(folders)) folder.close()
  assert.deepEqual([repair.repairedFiles, repair.failures], [1, []])
  assert.ok(readFileSync(join(finalDirectory!, 'files/a')).equals(body))
})

function sha256(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64')
}

function sha256Parts(body: Buffer): Buffer {
  const parts = [body.subarray(0, 16 * MIB), body.subarray(16 * MIB)]
  return Buffer.concat(parts.map((part) => createHash('sha256').update(part).digest()))
}
