import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { listenLocally } from '../testing/listen-locally.js'
import { HttpPool } from './http-pool.js'
import { readAnswer } from './read-answer.js'

test('an answer that does not end is given up at its limit', async (t) => {
  const chunk = Buffer.alloc(1024, 'a')
  const server = createServer((_, response) => {
    const write = () => {
      while (!response.destroyed && response.write(chunk));
    }
    response.on('drain', write)
    write()
  })
  const port = await listenLocally(server)
  const pool = new HttpPool(`http://127.0.0.1:${port}`, { connections: 1 })
  t.after(() => {
    pool.close()
    server.close()
  })
  const request = { method: 'GET', path: '/', headers: { host: 'store' }, stallTimeoutMs: 5000 } as const
  const limits = { signal: undefined, progress: { hasAnswer: false }, maxBytes: 1024 * 1024 }
  await assert.rejects(readAnswer(pool, request, limits), {
    code: 'ENDLESS_ANSWER',
    message: 'more than 1 MiB',
  })
})
