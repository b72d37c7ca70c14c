import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { mock, test } from 'node:test'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { BLOCK_BYTES } from '../platform/block-bytes.js'
import { makeCertificate } from '../testing/certificate.js'
import { listenLocally } from '../testing/listen-locally.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { READ_BYTES } from './http-connection.js'
import { HttpPool } from './http-pool.js'

/** Longest piece that TLS gives out. */
const MAX_RECORD_BYTES = 16 * 1024
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

/** A server that calls `answer` for each request; `connections` counts those it accepted. */
async function serve(answer: (socket: Socket, request: number) => unknown, tls?: TlsOptions) {
  const sockets = new Set<Socket>()
  let requests = 0
  const take = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', () => {
      requests += 1
      answer(socket, requests)
    })
  }
  const server = tls ? createTlsServer(tls, take) : createServer(take)
  const port = await listenLocally(server)
  return {
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    connections: () => sockets.size,
    requests: () => requests,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function get(pool: HttpPool, stallTimeoutMs = 5000): Promise<string> {
  return new Promise((resolve, reject) => {
    let body = ''
    pool.send(
      { method: 'GET', path: '/a', headers: { host: 'x' }, stallTimeoutMs },
      {
        onHead: () => {},
        onData: (chunk) => {
          body += Buffer.from(chunk).toString()
        },
        onEnd: () => resolve(body),
        onError: reject,
      },
    )
  })
}

test('requests share connections, never more than the limit', async () => {
  const server = await serve((socket) => setTimeout(() => socket.write(OK), 5))
  const pool = new HttpPool(server.origin, { connections: 2 })
  assert.deepEqual(new Set(await Promise.all(Array.from({ length: 20 }, () => get(pool)))), new Set(['ok']))
  assert.equal(server.connections(), 2)
  assert.equal(server.requests(), 20)
  pool.close()
  server.close()
})

test('a request is sent again when the server closes the idle connection under it', async () => {
  const server = await serve((socket, request) => {
    if (request === 2) socket.resetAndDestroy()
    else socket.write(OK)
  })
  const pool = new HttpPool(server.origin, { connections: 1 })
  assert.equal(await get(pool), 'ok')
  assert.equal(await get(pool), 'ok')
  assert.equal(server.requests(), 3)
  pool.close()
  server.close()
})

test('a request whose answer has begun is not sent again', async () => {
  const server = await serve((socket, request) => {
    socket.write(request === 1 ? OK : OK.slice(0, -1), () => request === 2 && socket.destroy())
  })
  const pool = new HttpPool(server.origin, { connections: 1 })
  await get(pool)
  await assert.rejects(get(pool), { code: 'HTTP_CLOSED' })
  assert.equal(server.requests(), 2)
  pool.close()
  server.close()
})

test('an answer that ends in a pause is complete after it, and its connection serves the next request', async () => {
  const server = await serve((socket) => socket.write(OK))
  const pool = new HttpPool(server.origin, { connections: 1 })
  const heard: string[] = []
  await new Promise<void>((resolve, reject) => {
    const control = pool.send(
      { method: 'GET', path: '/a', headers: { host: 'x' }, stallTimeoutMs: 5000 },
      {
        onHead: () => {},
        onData: () => {
          control.pause()
          setTimeout(() => {
            heard.push('resumed')
            control.resume()
          }, 50)
        },
        onEnd: () => {
          heard.push('complete')
          resolve()
        },
        onError: reject,
      },
    )
  })
  assert.deepEqual(heard, ['resumed', 'complete'])
  assert.equal(await get(pool), 'ok')
  assert.equal(server.connections(), 1)
  pool.close()
  server.close()
})

test('a server that says nothing is HTTP_STALLED', async () => {
  const server = await serve(() => {})
  const pool = new HttpPool(server.origin, { connections: 1 })
  await assert.rejects(get(pool, 50), { code: 'HTTP_STALLED' })
  pool.close()
  server.close()
})

test('closing fails what runs and what waits', async () => {
  const server = await serve(() => {})
  const pool = new HttpPool(server.origin, { connections: 1 })
  const running = [get(pool), get(pool)]
  pool.close()
  for (const request of running) await assert.rejects(request, /closed/)
  server.close()
})

test('reads of a body end at boundaries of blocks, wherever its head ended', async () => {
  const body = Buffer.from(Array.from({ length: 4_000_000 }, (_, index) => (index * index) >> 5))
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`
  const server = await serve((socket) => socket.write(Buffer.concat([Buffer.from(head), body])))
  const pool = new HttpPool(server.origin, { connections: 1 })
  const chunks: Buffer[] = []
  await new Promise<void>((resolve, reject) => {
    pool.send(
      { method: 'GET', path: '/a', headers: { host: 'x' }, stallTimeoutMs: 5000 },
      {
        onHead: () => {},
        onData: (chunk) => void chunks.push(Buffer.from(chunk)),
        onEnd: resolve,
        onError: reject,
      },
    )
  })
  pool.close()
  server.close()
  assert.ok(Buffer.concat(chunks).equals(body))
  let at = 0
  for (const [index, { length }] of chunks.entries()) {
    if (index > 0) assert.ok(length <= READ_BYTES - (at % BLOCK_BYTES), `${length} bytes at ${at}`)
    at += length
  }
})

for (const isTls of [false, true])
  test(`a body is read ${isTls ? 'over TLS ' : ''}into the room that its listener has for it, and the next answer is not`, async (context) => {
    const body = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => (index * index) >> 5))
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`
    const answer = (socket: Socket) => socket.write(Buffer.concat([Buffer.from(head), body]))
    const { server, cert } = isTls ? await serveTls(context, answer) : { server: await serve(answer) }
    const pool = new HttpPool(server.origin, { connections: 1, ca: cert })
    const room = Buffer.alloc(body.length)
    const sizes: number[] = []
    await new Promise<void>((resolve, reject) => {
      let at = 0
      const control = pool.send(
        { method: 'GET', path: '/a', headers: { host: 'x' }, stallTimeoutMs: 5000 },
        {
          onHead: () => {},
          onData: (chunk) => {
            if (at === 0) room.set(chunk) // came with the head
            at += chunk.length
            sizes.push(chunk.length)
            if (at < body.length) return
            control.pause() // the answer ends after the choice of memory for the next bytes
            setImmediate(() => control.resume())
          },
          findRoom: () => room.subarray(at % body.length),
          onEnd: resolve,
          onError: reject,
        },
      )
    })
    assert.ok(room.equals(body))
    if (isTls) assert.ok(Math.max(...sizes) > MAX_RECORD_BYTES, `${sizes}`)
    await get(pool)
    assert.ok(room.equals(body))
    assert.equal(server.connections(), 1)
    pool.close()
    server.close()
  })

test('a header with a line break is refused', () => {
  const pool = new HttpPool('http://127.0.0.1:1', { connections: 1 })
  const listener = { onHead() {}, onData() {}, onEnd() {}, onError() {} }
  const headers = { 'if-match': '"a"\r\nx: y' }
  assert.throws(
    () => pool.send({ method: 'GET', path: '/', headers, stallTimeoutMs: 1000 }, listener),
    RangeError,
  )
  pool.close()
})

test('a request that is sent after the end of the pool fails', async () => {
  const pool = new HttpPool('http://127.0.0.1:1', { connections: 1 })
  pool.close()
  await assert.rejects(get(pool), /the connections were closed/)
})

/** A server with a self-signed certificate for 127.0.0.1. */
async function serveTls(
  context: Parameters<typeof temporaryDirectory>[0],
  answer = (socket: Socket): unknown => socket.write(OK),
) {
  const { certFile, keyFile } = makeCertificate(await temporaryDirectory(context))
  const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')]
  const server = await serve(answer, { cert, key })
  context.after(() => server.close())
  return { server, cert }
}

test('a server is believed whose certificate the given authority signed, and its connections are kept', async (context) => {
  const { server, cert } = await serveTls(context)
  const pool = new HttpPool(server.origin, { connections: 1, ca: cert })
  assert.equal(await get(pool), 'ok')
  assert.equal(await get(pool), 'ok')
  assert.equal(server.connections(), 1)
  pool.close()
})

test('a certificate that vouches for itself is not believed, and no request is sent', async (context) => {
  const { server } = await serveTls(context)
  const pool = new HttpPool(server.origin, { connections: 1 })
  await assert.rejects(get(pool), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  assert.equal(server.requests(), 0)
  pool.close()
})

test('a certificate for another host name is not believed, and no request is sent', async (context) => {
  const { server, cert } = await serveTls(context)
  const pool = new HttpPool(server.origin.replace('127.0.0.1', 'localhost'), { connections: 1, ca: cert })
  await assert.rejects(get(pool), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  assert.equal(server.requests(), 0)
  pool.close()
})

test('a request that finds only connections that were idle for too long is sent over a new one', async (context) => {
  const server = await serve((socket) => socket.write(OK))
  context.after(() => server.close())
  const pool = new HttpPool(server.origin, { connections: 2 })
  context.after(() => pool.close())
  assert.equal(await get(pool), 'ok')
  const now = performance.now.bind(performance)
  mock.method(performance, 'now', () => now() + 31_000)
  context.after(() => mock.reset())
  assert.equal(await get(pool), 'ok')
  assert.equal(server.connections(), 2)
})
