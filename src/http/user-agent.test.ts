import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { listenLocally } from '../testing/listen-locally.js'
import { HttpPool } from './http-pool.js'
import { readAnswer } from './read-answer.js'
import { USER_AGENT } from './user-agent.js'

test('the user agent is of this version', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.match(USER_AGENT, new RegExp(`^dsc/${version.split('.').slice(0, 2).join('\\.')} \\(\\+.+\\)$`))
})

test('every request says who asks, also where the caller has headers of its own', async (context) => {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers['user-agent'])
    response.end()
  })
  const port = await listenLocally(server, context)
  const pool = new HttpPool(`http://127.0.0.1:${port}`, { connections: 1 })
  for (const headers of [{ host: 'a' }, { host: 'a', 'user-agent': 'other' }])
    await readAnswer(
      pool,
      { method: 'GET', path: '/', headers, stallTimeoutMs: 5000 },
      { signal: undefined, progress: { hasAnswer: false } },
    )
  pool.close()
  assert.deepEqual(seen, [USER_AGENT, 'other'])
})
