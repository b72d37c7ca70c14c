import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { needsRoot } from '../../testing/needs.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { connectToFeed } from './connect-to-feed.js'
import { listenOnSocket } from './listen-on-socket.js'

const isRefusal = (message: RegExp) => (error: unknown) =>
  isDscError(error, 'FEED_PROTOCOL') && message.test(error.message)

/** Listens on a socket that anybody could have made, in a folder of `mode`. */
async function listenAnyhow(context: TestContext, mode: number): Promise<string> {
  const folder = join(makeTestFolder(context), 'run')
  mkdirSync(folder)
  const path = join(folder, 'feed.sock')
  const server = createServer((socket) => socket.destroy()).listen(path)
  context.after(() => server.close())
  await once(server, 'listening')
  chmodSync(path, 0o600)
  chmodSync(folder, mode)
  return path
}

test('a socket for this user only is made in a folder for this user only', async (context) => {
  const path = join(makeTestFolder(context), 'run', 'feed.sock')
  const server = createServer((socket) => socket.end('feed'))
  await listenOnSocket(server, path)
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const [answer] = await once(connectToFeed(path), 'data')
  assert.equal(String(answer), 'feed')
  await new Promise((resolve) => server.close(resolve))
  assert.equal(statSync(path, { throwIfNoEntry: false }), undefined, 'it goes with its server')
})

for (const mode of [0o777, 0o770]) {
  test(`a folder of mode ${mode.toString(8)} is refused, by who listens and by who connects`, async (context) => {
    const path = await listenAnyhow(context, mode)
    assert.throws(() => connectToFeed(path), isRefusal(/run has mode 07/))
    await assert.rejects(listenOnSocket(createServer(), path), isRefusal(/run has mode 07/))
  })
}

test('in a folder that all share, as /tmp, the socket must be this user’s own and nobody else’s to use', async (context) => {
  const path = await listenAnyhow(context, 0o1777)
  connectToFeed(path).destroy()
  chmodSync(path, 0o666)
  assert.throws(() => connectToFeed(path), isRefusal(/feed\.sock has mode 0666/))
})

test('a folder or a socket of another user is refused', {
  skip: needsRoot,
}, async (context) => {
  const path = await listenAnyhow(context, 0o700)
  chownSync(path, 12_345, 12_345)
  assert.throws(() => connectToFeed(path), isRefusal(/feed\.sock belongs to user 12345/))
  await assert.rejects(listenOnSocket(createServer(), path), isRefusal(/belongs to user 12345/))
  chownSync(join(path, '..'), 12_345, 12_345)
  assert.throws(() => connectToFeed(path), isRefusal(/run belongs to user 12345/))
  chmodSync(join(path, '../..'), 0o755)
  process.seteuid!(12_346) // may not even look into that folder
  try {
    assert.throws(() => connectToFeed(path), isRefusal(/run belongs to user 12345/))
  } finally {
    process.seteuid!(0)
  }
})
