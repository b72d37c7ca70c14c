import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { deriveDatasetName } from '../../model/dataset.js'
import { planProof } from '../../proof/plan-proof.js'
import { testSourceContract } from '../source.contract.js'
import type { ListedObject, Source } from '../source.js'
import { openWebSource } from './web-source.js'

interface WebServer {
  readonly origin: string
  /** By percent-encoded path. */
  readonly files: Map<string, Buffer>
  readonly requests: IncomingMessage[]
  answersRanges: boolean
  hasEtags: boolean
  hasWeakEtags: boolean
  /** Answers a request for this path with this status instead of a file. */
  readonly refused: Map<string, number>
  /** Target path by path. */
  readonly redirects: Map<string, string>
  close(): Promise<void>
}

async function startWebServer(): Promise<WebServer> {
  const server = createServer((request, response) => {
    web.requests.push(request)
    const path = request.url!.replace(/\?.*/, '')
    const target = web.redirects.get(path)
    if (target !== undefined) {
      response.writeHead(302, { location: target }).end()
      return
    }
    const body = web.files.get(path)
    if (body === undefined || web.refused.has(path)) {
      response.writeHead(web.refused.get(path) ?? 404).end()
      return
    }
    const etag = `${web.hasWeakEtags ? 'W/' : ''}"${createHash('md5').update(body).digest('hex')}"`
    if (web.hasEtags) response.setHeader('etag', etag)
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    const ifRange = request.headers['if-range']
    const isSame = ifRange === undefined || (ifRange === etag && !web.hasWeakEtags)
    const isRange = from !== undefined && web.answersRanges && isSame
    const part = isRange ? body.subarray(Number(from), Number(to) + 1) : body
    if (isRange) response.setHeader('content-range', `bytes ${from}-${to}/${body.length}`)
    response.writeHead(isRange ? 206 : 200, { 'content-length': part.length })
    response.end(request.method === 'HEAD' ? undefined : part)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const web: WebServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    files: new Map(),
    requests: [],
    answersRanges: true,
    hasEtags: true,
    hasWeakEtags: false,
    refused: new Map(),
    redirects: new Map(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return web
}

testSourceContract('https', async () => {
  const web = await startWebServer()
  const encode = (key: string) => key.split('/').map(encodeURIComponent).join('/')
  const names = new Set<string>()
  const list = () =>
    web.files.set('/d/files.txt', Buffer.from([...names].map((name) => `${name}\n`).join('')))
  return {
    source: open(`${web.origin}/d/files.txt`),
    put: async (key, body) => {
      names.add(encode(key))
      web.files.set(`/d/${encode(key)}`, Buffer.from(body))
      list()
    },
    remove: async (key) => {
      names.delete(encode(key))
      web.files.delete(`/d/${encode(key)}`)
      list()
    },
    close: () => web.close(),
  }
})

describe('a web source', () => {
  let web: WebServer
  const body = Buffer.from('some bytes')
  const sha256 = createHash('sha256').update(body).digest('hex')
  before(async () => {
    web = await startWebServer()
    web.files.set('/d/a.bin', body)
  })
  after(() => web.close())

  test('one URL is one file, whose query is sent and not shown', async () => {
    const source = open(`${web.origin}/d/a.bin?signature=hush`)
    assert.equal(source.url, `${web.origin}/d/a.bin`)
    const [object, ...more] = await list(source)
    assert.deepEqual([object?.key, object?.sizeBytes, more.length], ['a.bin', body.length, 0])
    assert.equal(await read(source, object!), 'some bytes')
    assert.ok(web.requests.at(-1)?.url?.endsWith('?signature=hush'))
    const missing = open(`${web.origin}/d/none?signature=hush`)
    await assert.rejects(list(missing), (error) => {
      assert.ok(isDscError(error, 'SOURCE_NOT_FOUND'))
      return !error.message.includes('hush')
    })
  })

  test('a list with size and SHA-256 asks nothing of each file, and proves it by that', async () => {
    web.files.set('/d/files.txt', Buffer.from(`# remark\n${web.origin}/d/a.bin ${body.length} ${sha256}\n`))
    web.requests.length = 0
    const source = open(`${web.origin}/d/files.txt`)
    const [object] = await list(source)
    assert.equal(web.requests.length, 1)
    assert.deepEqual(object?.checksum, {
      algorithm: 'sha256',
      value: Buffer.from(sha256, 'hex').toString('base64'),
    })
    assert.equal(await read(source, object!), 'some bytes')
  })

  test('a list that nobody has named has a limit, as everybody may ask a service for it', async () => {
    const remarks = `#${'x'.repeat(1024 ** 2)}\n`.repeat(33)
    web.files.set('/d/files.txt', Buffer.from(`${remarks}${web.origin}/d/a.bin ${body.length} ${sha256}\n`))
    const source = `${web.origin}/d/files.txt`
    assert.equal((await list(open(source))).length, 1)
    await assert.rejects(list(open(source, deriveDatasetName(source))), {
      code: 'SOURCE_UNREACHABLE',
      message: /more than 32 MiB/,
      hint: /dsc dataset add/,
    })
  })

  for (const { what, answer, head = { 'transfer-encoding': 'chunked' } } of [
    { what: 'refuses HEAD with 403', answer: 403 },
    { what: 'refuses HEAD with 405', answer: 405 },
    { what: 'does not know HEAD', answer: 501 },
    { what: 'tells no length in answer to HEAD', answer: 200 },
    { what: 'calls it empty in answer to HEAD', answer: 200, head: { 'content-length': '0' } },
  ])
    for (const answersRanges of [true, false])
      test(`a file is read from a server that ${what}, ${answersRanges ? 'with' : 'without'} ranges`, async (t) => {
        const body = Buffer.alloc(70_000, 7)
        const server = createServer((request, response) => {
          response.setHeader('etag', '"x1"')
          if (request.method === 'HEAD') {
            response.writeHead(answer, head).end()
            return
          }
          const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
          const isRange = from !== undefined && answersRanges
          if (isRange) response.setHeader('content-range', `bytes ${from}-${to}/${body.length}`)
          const part = isRange ? body.subarray(Number(from), Number(to) + 1) : body
          response.writeHead(isRange ? 206 : 200, { 'content-length': part.length }).end(part)
        })
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
        t.after(() => server.close())
        const source = open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/f.tar?signature=x`)
        const page: ListedObject[] = []
        for await (const objects of source.list({})) page.push(...objects)
        assert.deepEqual(
          page.map(({ key, sizeBytes, etag }) => [key, sizeBytes, etag]),
          [['f.tar', 70_000, 'x1']],
        )
        await source.close()
      })

  for (const status of [200, 416])
    test(`a file is empty if the server also answers GET so, with ${status}`, async (t) => {
      const server = createServer(({ method }, response) => {
        response.writeHead(method === 'GET' ? status : 200, { 'content-length': '0' }).end()
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      t.after(() => server.close())
      const source = open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/empty`)
      const page: ListedObject[] = []
      for await (const objects of source.list({})) page.push(...objects)
      assert.deepEqual(
        page.map(({ sizeBytes }) => sizeBytes),
        [0],
      )
      await source.close()
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
      const objects = await list(source)
      assert.deepEqual(
        objects.map((object) => object.key),
        [key],
      )
      assert.equal(await read(source, objects[0]!), 'some bytes')
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
      const [object] = await list(source)
      assert.deepEqual(object?.checksum, { algorithm: 'md5', value: md5.toString('base64') })
      assert.equal(object?.sizeBytes, body.length)
      const fetcher = await source.openFetcher({ connections: 1 })
      const facts = await fetcher.inspect({ ...object!, stallTimeoutMs: 5000 })
      await fetcher.close()
      const proof = planProof({ ...object!, partBytes: 5, facts })
      assert.deepEqual(proof, { kind: 'whole', algorithm: 'md5', expected: md5.toString('hex') })
    }
  })

  test('a server without ranges says so, and one without etags is compared by size and date', async () => {
    web.answersRanges = false
    web.hasEtags = false
    const source = open(`${web.origin}/d/a.bin`)
    const [object] = await list(source)
    const fetcher = await source.openFetcher({ connections: 1 })
    assert.equal((await fetcher.inspect({ ...object!, stallTimeoutMs: 5000 })).ignoresRanges, true)
    assert.equal(await read(source, object!), 'some bytes')
    await fetcher.close()
    web.answersRanges = true
    web.hasEtags = true
  })

  test('whether ranges are answered is asked of each server by itself', async (t) => {
    const other = await startWebServer()
    t.after(() => other.close())
    other.files.set('/b.bin', body)
    other.answersRanges = false
    const rest = ` ${body.length} ${sha256}\n`
    web.files.set('/d/files.txt', Buffer.from(`${other.origin}/b.bin${rest}a.bin${rest}`))
    const source = open(`${web.origin}/d/files.txt`)
    const fetcher = await source.openFetcher({ connections: 1 })
    const ignored: unknown[] = []
    for (const object of await list(source))
      ignored.push((await fetcher.inspect({ ...object, stallTimeoutMs: 5000 })).ignoresRanges)
    assert.deepEqual(ignored, [true, undefined])
    await fetcher.close()
  })

  for (const { etags, isWeak } of [
    { etags: 'strong', isWeak: false },
    { etags: 'weak', isWeak: true },
  ])
    test(`ranges are asked for ${isWeak ? 'without' : 'with'} If-Range where etags are ${etags}`, async () => {
      web.hasWeakEtags = isWeak
      const source = open(`${web.origin}/d/a.bin`)
      const [object] = await list(source)
      const fetcher = await source.openFetcher({ connections: 1 })
      assert.equal((await fetcher.inspect({ ...object!, stallTimeoutMs: 5000 })).ignoresRanges, undefined)
      let text = ''
      const sink = (chunk: Uint8Array) => {
        text += Buffer.from(chunk).toString()
        return 0
      }
      const request = { ...object!, offset: 5, length: 5, stallTimeoutMs: 5000, sink }
      await fetcher.fetch(request)
      assert.equal(text, 'bytes')
      assert.equal(web.requests.at(-1)?.headers['if-range'], isWeak ? undefined : `"${object!.etag}"`)
      web.files.set('/d/a.bin', Buffer.from('more bytes'))
      await assert.rejects(fetcher.fetch(request), (error) => isDscError(error, 'SOURCE_CHANGED'))
      await fetcher.close()
      web.files.set('/d/a.bin', body)
      web.hasWeakEtags = false
    })

  test('a signed URL is asked for again when it has run out, and not before', async () => {
    web.files.set('/signed/1', body).set('/signed/2', body)
    web.redirects.set('/lasting', '/signed/1?signature=1')
    const source = open(`${web.origin}/lasting`)
    const [object] = await list(source)
    const fetcher = await source.openFetcher({ connections: 1 })
    const asked = async () => {
      web.requests.length = 0
      await fetcher.fetch({ ...object!, offset: 0, length: 10, stallTimeoutMs: 5000, sink: () => 0 })
      return web.requests.map(({ url }) => url)
    }
    assert.deepEqual(await asked(), ['/lasting', '/signed/1?signature=1'])
    assert.deepEqual(await asked(), ['/signed/1?signature=1'])
    web.refused.set('/signed/1', 403)
    web.redirects.set('/lasting', '/signed/2?signature=2')
    assert.deepEqual(await asked(), ['/signed/1?signature=1', '/lasting', '/signed/2?signature=2'])
    await fetcher.close()
  })

  test('redirects are followed, not in circles', async () => {
    web.redirects.set('/old', '/older').set('/older', '/d/a.bin').set('/round', '/round')
    const source = open(`${web.origin}/old`)
    assert.equal(await read(source, (await list(source))[0]!), 'some bytes')
    await assert.rejects(list(open(`${web.origin}/round`)), /leads in circles/)
  })

  test('a list leads to this node only under its own name', async () => {
    const { port } = new URL(web.origin)
    web.files.set('/l/files.txt', Buffer.from(`http://localhost:${port}/d/a.bin`))
    const asked = web.requests.length
    const listing = list(open(`${web.origin}/l/files.txt`))
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
      what: 'a digest that is none',
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
      await assert.rejects(list(open(`${web.origin}/bad/${name}`)), (error) => {
        assert.ok(isDscError(error, 'SOURCE_UNREACHABLE'))
        assert.match(error.message, says)
        return true
      })
    })
})

function open(source: string, name = 'a'): Source {
  return openWebSource({ name, source, include: [], exclude: [] })
}

async function list(source: Source): Promise<readonly ListedObject[]> {
  const objects: ListedObject[] = []
  for await (const page of source.list({})) objects.push(...page)
  return objects
}

async function read(source: Source, object: ListedObject): Promise<string> {
  const fetcher = await source.openFetcher({ connections: 2 })
  let text = ''
  await fetcher.fetch({
    ...object,
    offset: 0,
    length: object.sizeBytes,
    stallTimeoutMs: 5000,
    sink: (chunk) => {
      text += Buffer.from(chunk).toString()
      return 0
    },
  })
  await fetcher.close()
  return text
}
