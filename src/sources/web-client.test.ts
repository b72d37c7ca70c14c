import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findRedirect, WebClient } from './web-client.js'

/** Follows a redirect of the source at `home` to `to`; resolves with the hosts that were asked. */
async function follow(home: string, to: string): Promise<readonly string[]> {
  const client = new WebClient({ connections: 1, ca: undefined, authorize: () => ({}), home })
  const asked: string[] = []
  try {
    await client.follow(home, async ({ origin }) => {
      asked.push(origin)
      if (asked.length === 1) throw findRedirect(home, 302, { location: to })
    })
  } finally {
    client.close()
  }
  return asked
}

for (const to of [
  'http://127.0.0.1:8500/',
  'http://169.254.169.254/latest',
  'http://[::1]/',
  'http://localhost/',
]) {
  test(`a redirect of another host to ${to} is not followed`, async () => {
    await assert.rejects(follow('http://data.example/a.bin', to), { code: 'SOURCE_UNREACHABLE' })
  })
}

test('a redirect to another host is followed, and one on this node, too', async () => {
  const led = ['http://data.example', 'http://cdn.example']
  assert.deepEqual(await follow('http://data.example/a.bin', 'http://cdn.example/a.bin'), led)
  const here = ['http://127.0.0.1:1', 'http://localhost:2']
  assert.deepEqual(await follow('http://127.0.0.1:1/a.bin', 'http://localhost:2/a.bin'), here)
})
