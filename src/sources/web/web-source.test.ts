import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { listAll, readObject } from '../../testing/read-source.js'
import { startWebServer, type WebServer } from '../../testing/web-server.js'
import { testSourceContract } from '../source.contract.js'
import type { ListedObject, Source } from '../source.js'
import { openWebSource } from './web-source.js'

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
    const [object, ...more] = await listAll(source)
    assert.deepEqual([object?.key, object?.sizeBytes, more.length], ['a.bin', body.length, 0])
    assert.equal(await readObject(source, object!), 'some bytes')
    assert.ok(web.requests.at(-1)?.url?.endsWith('?signature=hush'))
    const missing = open(`${web.origin}/d/none?signature=hush`)
    await assert.rejects(listAll(missing), (error) => {
      assert.ok(isDscError(error, 'SOURCE_NOT_FOUND'))
      return !error.message.includes('hush')
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
        const port = await listenLocally(server, t)
        const source = open(`http://127.0.0.1:${port}/f.tar?signature=x`)
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
      const port = await listenLocally(server, t)
      const source = open(`http://127.0.0.1:${port}/empty`)
      const page: ListedObject[] = []
      for await (const objects of source.list({})) page.push(...objects)
      assert.deepEqual(
        page.map(({ sizeBytes }) => sizeBytes),
        [0],
      )
      await source.close()
    })

  test('a server without ranges says so, and one without etags is compared by size and date', async () => {
    web.answersRanges = false
    web.hasEtags = false
    const source = open(`${web.origin}/d/a.bin`)
    const [object] = await listAll(source)
    const fetcher = await source.openFetcher({ connections: 1 })
    assert.equal((await fetcher.inspect({ ...object!, stallTimeoutMs: 5000 })).ignoresRanges, true)
    assert.equal(await readObject(source, object!), 'some bytes')
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
    for (const object of await listAll(source))
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
      const [object] = await listAll(source)
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
      await assert.rejects(fetcher.fetch(request), { code: 'SOURCE_CHANGED' })
      await fetcher.close()
      web.files.set('/d/a.bin', body)
      web.hasWeakEtags = false
    })

  test('a signed URL is asked for again when it has run out, and not before', async () => {
    web.files.set('/signed/1', body).set('/signed/2', body)
    web.redirects.set('/lasting', '/signed/1?signature=1')
    const source = open(`${web.origin}/lasting`)
    const [object] = await listAll(source)
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
    assert.equal(await readObject(source, (await listAll(source))[0]!), 'some bytes')
    await assert.rejects(listAll(open(`${web.origin}/round`)), /leads in circles/)
  })
})

function open(source: string, name = 'a'): Source {
  return openWebSource({ name, source, include: [], exclude: [] })
}
