import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { askRunningFeeds } from './ask-feed.js'
import { formatSessionFrame, MESSAGE } from './wire.js'

const OF_PYTHON = 'feed-0123456789abcdef0123.sock'

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-feeds-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

async function listen(t: TestContext, socket: string, text: string): Promise<void> {
  const server = createServer((client) => {
    client.once('data', () => client.end(formatSessionFrame(MESSAGE.status, {}, Buffer.from(text))))
  })
  server.listen(socket)
  await once(server, 'listening')
  chmodSync(socket, 0o600)
  t.after(() => server.close())
}

/** Leaves a socket behind as a feed does that is killed. */
async function leaveDeadSocket(socket: string): Promise<void> {
  const program = `require('node:net').createServer().listen(${JSON.stringify(socket)}, () => process.stdout.write('up'))`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')
  chmodSync(socket, 0o600)
}

test('a feed of dsc feed serve and one of Python are both asked', async (t) => {
  const folder = makeFolder(t)
  await listen(t, join(folder, 'feed.sock'), 'a 1')
  await listen(t, join(folder, OF_PYTHON), 'b 2')
  assert.deepEqual(await askRunningFeeds(folder, MESSAGE.status), [
    { socket: join(folder, OF_PYTHON), text: 'b 2' },
    { socket: join(folder, 'feed.sock'), text: 'a 1' },
  ])
})

for (const dead of ['feed.sock', OF_PYTHON])
  test(`${dead} of a killed feed hides no other feed`, async (t) => {
    const folder = makeFolder(t)
    const live = join(folder, dead === OF_PYTHON ? 'feed.sock' : OF_PYTHON)
    await leaveDeadSocket(join(folder, dead))
    await listen(t, live, 'a 1')
    assert.deepEqual(await askRunningFeeds(folder, MESSAGE.status), [{ socket: live, text: 'a 1' }])
  })

test('other files are not asked, nor a folder that is missing', async (t) => {
  const folder = makeFolder(t)
  writeFileSync(join(folder, 'feed-0123456789abcdef0123.sock.lock'), '')
  assert.deepEqual(await askRunningFeeds(folder, MESSAGE.status), [])
  assert.deepEqual(await askRunningFeeds(join(folder, 'missing'), MESSAGE.status), [])
})

test('a socket that others may answer at is refused, not left out', async (t) => {
  const folder = makeFolder(t)
  await listen(t, join(folder, 'feed.sock'), 'a 1')
  chmodSync(join(folder, 'feed.sock'), 0o666)
  await assert.rejects(askRunningFeeds(folder, MESSAGE.status), { code: 'FEED_PROTOCOL' })
})
