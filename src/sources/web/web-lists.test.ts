import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { deriveDatasetName } from '../../model/dataset.js'
import { planProof } from '../../proof/plan-proof.js'
import { listAll, readObject } from '../../testing/read-source.js'
import { startWebServer, type WebServer } from '../../testing/web-server.js'
import type { Source } from '../source.js'
import { openWebSource } from './web-source.js'

describe('a list of a web source', () => {
  let web: WebServer
  const body = Buffer.from('some bytes')
  const sha256 = createHash('sha256').update(body).digest('hex')
  before(async () => {
    web = await startWebServer()
    web.files.set('/d/a.bin', body)
  })
  after(() => web.close())

  test('a list with size and SHA-256 asks nothing of each file, and proves it by that', async () => {
    web.files.set('/d/files.txt', Buffer.from(`# remark\n${web.origin}/d/a.bin ${body.length} ${sha256}\n`))
    web.requests.length = 0
    const source = open(`${web.origin}/d/files.txt`)
    const [object] = await listAll(source)
    assert.equal(web.requests.length, 1)
    assert.deepEqual(object?.checksum, {
      algorithm: 'sha256',
      value: Buffer.from(sha256, 'hex').toString('base64'),
    })
    assert.equal(await readObject(source, object!), 'some bytes')
  })

  test('a list that nobody has named has a limit, as everybody may ask a service for it', async () => {
    const remarks = `#${'x'.repeat(1024 ** 2)}\n`.repeat(33)
    web.files.set('/d/files.txt', Buffer.from(`${remarks}${web.origin}/d/a.bin ${body.length} ${sha256}\n`))
    const source = `${web.origin}/d/files.txt`
    assert.equal((await listAll(open(source))).length, 1)
    await assert.rejects(listAll(open(source, deriveDatasetName(source))), {
      code: 'SOURCE_UNREACHABLE',
      message: /more than 32 MiB/,
      hint: /dsc dataset add/,
    })
  })

  test('BagIt and Croissant manifests are read', async () => {
    web.files.set('/bag/manifest-sha256.txt', Buffer.from(`${sha256}  data/a%25b.bin\n`))
    web.files.set('/bag/data/a%25b.bin', body)
    const distribution = [
      { '@type': 'cr:FileObject', contentUrl: '../d/a.bin', sha256, contentSize: `${body.length} B` },
      { '@type': 'cr:FileSet', containedIn: 'x' },
    ]
    web.files.set('/c/croissant.json', Buffer.from(JSON.stringify({ distribution })))
    for (const [url, key] of [
      ['/bag/manifest-sha256.txt', 'data/a%b.bin'],
      ['/c/croissant.json', `${new URL(web.origin).host}/d/a.bin`],
    ]) {
      const source = open(web.origin + url)
      const objects = await listAll(source)
      assert.deepEqual(
        objects.map((object) => object.key),
        [key],
      )
      assert.equal(await readObject(source, objects[0]!), 'some bytes')
    }
  })

  test('a Croissant manifest’s MD5 proves a file that has no SHA-256, in hexadecimal or base64', async () => {
    const md5 = createHash('md5').update(body).digest()
    for (const written of [md5.toString('hex').toUpperCase(), md5.toString('base64')]) {
      const distribution = [
        { '@type': 'sc:FileObject', contentUrl: '../d/a.bin', md5: written, contentSize: '0.01 KB' },
      ]
      web.files.set('/md5/croissant.json', Buffer.from(JSON.stringify({ distribution })))
      const source = open(`${web.origin}/md5/croissant.json`)
      const [object] = await listAll(source)
      assert.deepEqual(object?.checksum, { algorithm: 'md5', value: md5.toString('base64') })
      assert.equal(object?.sizeBytes, body.length)
      const fetcher = await source.openFetcher({ connections: 1 })
      const facts = await fetcher.inspect({ ...object!, stallTimeoutMs: 5000 })
      await fetcher.close()
      const proof = planProof({ ...object!, partBytes: 5, facts })
      assert.deepEqual(proof, { kind: 'whole', algorithm: 'md5', expected: md5.toString('hex') })
    }
  })

  test('a list leads to this node only under its own name', async () => {
    const { port } = new URL(web.origin)
    web.files.set('/l/files.txt', Buffer.from(`http://localhost:${port}/d/a.bin`))
    const asked = web.requests.length
    const listing = listAll(open(`${web.origin}/l/files.txt`))
    await assert.rejects(listing, /127\.0\.0\.1 leads to localhost:\d+, which is this node itself/)
    assert.deepEqual(
      web.requests.slice(asked).map(({ url }) => url),
      ['/l/files.txt'],
    )
  })

  for (const { what, name, text, says } of [
    {
      what: 'a web page',
      name: 'files.txt',
      text: '<!doctype html>\n<p>hello, world',
      says: /line 1: expected URL/,
    },
    { what: 'another scheme', name: 'files.txt', text: 'ftp://host/x 1', says: /line 1: expected URL/ },
    { what: 'bytes that are no text', name: 'files.txt', text: '\0junk', says: /line 1: expected URL/ },
    { what: 'one key twice', name: 'files.txt', text: 'a.bin 1\na.bin 2', says: /"a.bin" is listed twice/ },
    {
      what: 'no digest',
      name: 'manifest-sha256.txt',
      text: 'abc  data/x',
      says: /line 1: expected SHA-256 and path/,
    },
    { what: 'no JSON', name: 'croissant.json', text: '{', says: /no JSON/ },
    {
      what: 'a file without URL',
      name: 'croissant.json',
      text: JSON.stringify({ distribution: [{ '@type': 'cr:FileObject', name: 'a' }] }),
      says: /distribution 1: expected a FileObject with a contentUrl/,
    },
    { what: 'no distribution', name: 'croissant.json', text: '{}', says: /with a distribution/ },
    {
      what: 'a malformed digest',
      name: 'croissant.json',
      text: '{"distribution":[{"@type":"cr:FileObject","contentUrl":"a","sha256":"main"}]}',
      says: /distribution 1: expected sha256 to be a SHA-256, found "main"/,
    },
    {
      what: 'a repository',
      name: 'croissant.json',
      text: '{"distribution":[{"@type":"cr:FileObject","contentUrl":"https://h/d","encodingFormat":"git+https"}]}',
      says: /distribution 1: expected a file, found the git repository https:\/\/h\/d .*hf:\/\//,
    },
  ])
    test(`a list with ${what} is refused by what is wrong with it`, async () => {
      web.files.set(`/bad/${name}`, Buffer.from(text))
      await assert.rejects(listAll(open(`${web.origin}/bad/${name}`)), {
        code: 'SOURCE_UNREACHABLE',
        message: says,
      })
    })
})

function open(source: string, name = 'a'): Source {
  return openWebSource({ name, source, include: [], exclude: [] })
}
