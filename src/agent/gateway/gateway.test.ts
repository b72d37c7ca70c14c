import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'
import type { HeldSource } from '../../testing/held-source.js'
import { waitFor } from '../../testing/world.js'

test('a client that ends its side once it has asked is answered when the object comes', async (t) => {
  const origin = originOf({ a: 'alpha' })
  const letGo = origin.source.hold('a')
  const { port } = await (await openGatewayNode(t, [origin])).open([DATA])
  const client = connect(port, '127.0.0.1')
  client.end('GET /bucket/data/a HTTP/1.0\r\n\r\n')
  await waitFor('the object to be asked for', () => origin.source.fetches('a') > 0)
  await sleep(200)
  letGo()
  let text = ''
  for await (const chunk of client) text += chunk
  assert.match(text, /^HTTP\/1\.1 200 .*\r\n\r\nalpha$/s)
})

test('while a client takes nothing of what is passed through, the source waits', async (t) => {
  const [SIZE_BYTES, PIECE_BYTES] = [96 * 1024 * 1024, 256 * 1024]
  const { source: held } = originOf({ big: Buffer.alloc(SIZE_BYTES) })
  let givenBytes = 0
  const source: HeldSource = {
    ...held,
    openFetcher: async (options) => ({
      ...(await held.openFetcher(options)),
      async fetch({ length, sink, signal }) {
        for (; givenBytes < length; givenBytes += PIECE_BYTES) {
          signal?.throwIfAborted()
          await sleep(sink(Buffer.alloc(PIECE_BYTES)))
        }
      },
    }),
  }
  const node = await openGatewayNode(t, [{ dataset: DATA, source }], { hasRoom: false })
  const { port } = await node.open([DATA])
  const client = connect(port, '127.0.0.1')
  t.after(() => client.destroy())
  client.pause().write('GET /bucket/data/big HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await waitFor('the first bytes', () => givenBytes > 0)
  await sleep(2000)
  assert.ok(givenBytes < 20 * 1024 * 1024, `${givenBytes} bytes wait for it`)
})

/** Sends these lines to the gateway and reads the whole answer. */
async function exchange(port: number, lines: readonly string[]): Promise<string> {
  const client = connect(port, '127.0.0.1')
  client.end(`${lines.join('\r\n')}\r\n\r\n`)
  let text = ''
  for await (const chunk of client) text += chunk
  return text
}

const get = (port: number, ...headers: readonly string[]) =>
  exchange(port, ['GET /bucket/data/a HTTP/1.1', 'connection: close', ...headers])

test('a request that a web page or a proxy could have sent is not taken for the local user', async (t) => {
  const { port } = await (await openGatewayNode(t, [originOf({ a: 'alpha' })])).open([DATA])
  const own = `host: 127.0.0.1:${port}`
  for (const headers of [
    ['host: evil.example'],
    ['host: bucket.evil.example'],
    [own, 'origin: http://evil.example'],
    [own, 'origin: null'],
    [own, 'sec-fetch-site: cross-site'],
    [own, 'sec-fetch-site: same-site'],
    [own, 'x-forwarded-for: 10.0.0.1'],
    [own, 'forwarded: for=10.0.0.1'],
    [own, 'via: 1.1 proxy'],
    [own, 'x-real-ip: 10.0.0.1'],
  ])
    assert.match(await get(port, ...headers), /^HTTP\/1\.1 403 .*AccessDenied/s, headers.join())
  for (const headers of [[own], [`host: localhost:${port}`], [own, `origin: http://127.0.0.1:${port}`]])
    assert.match(await get(port, ...headers), /^HTTP\/1\.1 200 .*alpha$/s, headers.join())
})

test('a bucket in the host name is the bucket, also one that nobody declared', async (t) => {
  const { port } = await (await openGatewayNode(t, [originOf({ a: 'alpha' })])).open([DATA])
  const path = 'GET /data/a HTTP/1.1'
  const rest = ['connection: close']
  assert.match(await exchange(port, [path, 'host: bucket.localhost', ...rest]), / 200 .*alpha$/s)
  assert.match(await exchange(port, [path, 'host: other.localhost', ...rest]), / 403 .*AccessDenied/s)
  assert.match(await get(port, 'host: other.localhost'), / 403 .*AccessDenied/s)
})

test('an upload is refused before its body is asked for', async (t) => {
  const { port } = await (await openGatewayNode(t, [originOf({ a: 'alpha' })])).open([DATA])
  const client = connect(port, '127.0.0.1')
  t.after(() => client.destroy())
  client.write(
    'PUT /bucket/data/b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5000000\r\nexpect: 100-continue\r\n\r\n',
  )
  const [answer] = await once(client, 'data')
  assert.match(String(answer), /^HTTP\/1\.1 403 /)
})

/** Sends an upload as clients do that read no answer before the body is sent. */
async function upload(port: number, megabytes: number) {
  const client = connect(port, '127.0.0.1')
  const send = (bytes: string | Buffer) => new Promise((resolve) => client.write(bytes, resolve))
  let failure: unknown
  client.on('error', (error) => {
    failure = error
  })
  await send(`PUT /bucket/data/b HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${megabytes * 1e6}\r\n\r\n`)
  let sent = 0
  for (; sent < megabytes && !failure; sent++) await send(Buffer.alloc(1e6))
  const answer = failure ? undefined : String((await once(client, 'data'))[0])
  client.destroy()
  return { answer, failure, sent }
}

test('an upload under way is refused so that its client hears it, and an endless one is cut off', async (t) => {
  const { port } = await (await openGatewayNode(t, [originOf({ a: 'alpha' })])).open([DATA])
  const { answer, failure } = await upload(port, 20)
  assert.ifError(failure)
  assert.match(answer!, /^HTTP\/1\.1 403 .*<Code>AccessDenied</s)
  assert.ok((await upload(port, 1000)).sent < 200)
})

test('a file that somebody removed from a ready copy comes from the source, and the operator hears of it', async (t) => {
  const node = await openGatewayNode(t, [originOf({ a: 'alpha', b: 'beta' })])
  await node.prepare(DATA)
  const { read } = await node.open([DATA])
  assert.equal((await read('/data/a')).text, 'alpha')
  const copies = join(node.root, 'copies', 'data')
  const files = join(copies, readdirSync(copies)[0]!, 'files')
  chmodSync(files, 0o755)
  rmSync(join(files, 'a'))
  assert.equal((await read('/data/a')).text, 'alpha')
  assert.equal((await read('/data/b')).text, 'beta')
  assert.match(
    node.notes.join('\n'),
    /files\/a is gone: sending it from the source\. .*dsc verify data --repair/,
  )
})

/** An object whose source reports its CRC32, and whose bytes may change on the way. */
function openFlipping(bytes: Buffer, isFlipped: boolean): HeldSource {
  const { source } = originOf({ a: bytes })
  const value = Buffer.alloc(4)
  value.writeUInt32BE(crc32(bytes))
  return {
    ...source,
    openFetcher: async (options) => {
      const fetcher = await source.openFetcher(options)
      const fetch: typeof fetcher.fetch = async (request) => {
        request.onFacts?.({
          checksums: [{ algorithm: 'crc32', value: value.toString('base64'), isComposite: false }],
          ...{ uploadPartBytes: null, isEtagMd5: false },
        })
        const { onFacts: _, ...rest } = request
        let offset = request.offset
        await fetcher.fetch({
          ...rest,
          sink: (chunk) => {
            const sent = Buffer.from(chunk)
            if (isFlipped && offset === 0) sent[0]! ^= 1
            offset += chunk.length
            return request.sink(sent)
          },
        })
      }
      return { ...fetcher, fetch }
    },
  }
}

for (const isFlipped of [false, true])
  test(`the checksum of an object that is passed through is ${isFlipped ? 'compared' : 'handed on'}`, async (t) => {
    const bytes = Buffer.alloc(300_000, 'x')
    const source = openFlipping(bytes, isFlipped)
    const node = await openGatewayNode(t, [{ dataset: DATA, source }], { hasRoom: false })
    const { port } = await node.open([DATA])
    const reading = fetch(`http://127.0.0.1:${port}/bucket/data/a`, {
      headers: { 'x-amz-checksum-mode': 'ENABLED' },
    }).then(async (answer) => ({ headers: answer.headers, body: await answer.arrayBuffer() }))
    if (isFlipped) {
      await assert.rejects(reading)
      assert.match(node.notes.join('\n'), /data: a did not come as the source has it \(expected crc32 /)
      await node.counted('CHECKSUM_MISMATCH', 1)
      return
    }
    const { headers, body } = await reading
    assert.deepEqual(Buffer.from(body), bytes)
    assert.ok(headers.get('x-amz-checksum-crc32'))
  })

test('an object that does not arrive as its source has it is refused, told once, and counted', async (t) => {
  const source = openFlipping(Buffer.alloc(300_000, 'x'), true)
  const node = await openGatewayNode(t, [{ dataset: DATA, source }])
  const { read } = await node.open([DATA])
  const now = performance.now.bind(performance)
  let skippedMs = 0
  t.mock.method(performance, 'now', () => now() + skippedMs)
  for (let i = 0; i < 2; i++) {
    skippedMs += 10_000 // a failed source is asked again
    const { status, text } = await read('/data/a')
    assert.equal(status, 503)
    assert.match(text, /ServiceUnavailable/)
  }
  assert.equal(
    node.notes.filter((note) => /^data: .*expected .*crc32/.test(note)).length,
    1,
    node.notes.join('\n'),
  )
  await node.counted('CHECKSUM_MISMATCH', 2)
})
