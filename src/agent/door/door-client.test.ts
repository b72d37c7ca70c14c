import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openService } from '../../testing/door-service.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { DoorClient } from './door-client.js'

/** A service that answers the first request in the first way, and so on. */
async function serve(context: TestContext, ...ways: readonly ((response: ServerResponse) => void)[]) {
  const path = join(await temporaryDirectory(context), 'run', 'dsc.sock')
  mkdirSync(join(path, '..'))
  let asked = 0
  const server = createServer((_, response) => ways[asked++]!(response))
  context.after(() => server.close())
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return path
}

const cutOff = (response: ServerResponse) => response.destroy()
const answer = (response: ServerResponse) => response.end('{"result":7}\n')

test('a service that is restarted is waited for, and told of once', async (context) => {
  const { door, path, reopen, cache } = await openService(context)
  const told: string[] = []
  const onAway = (sentence: string) => {
    told.push(sentence)
    void reopen()
  }
  await door.stop(0)
  const { node } = await new DoorClient(path, { onAway }).greet()
  assert.equal(node, cache.node)
  assert.deepEqual(told, [`the service at ${path} does not answer; waiting for it`])
})

test('a service that stays away is named', async (context) => {
  const { client, door, path } = await openService(context)
  await door.stop(0)
  await assert.rejects(client.greet(), { code: 'SERVICE_UNREACHABLE', message: new RegExp(path) })
})

test('each restart has its own patience: a line in between shows that the service was back', async (context) => {
  const path = await serve(
    context,
    cutOff,
    (response) => response.write('{"progress":{"step":"listing","objects":1}}\n', () => response.destroy()),
    (response) => response.end('{"progress":{"step":"listing","objects":2}}\n'),
    answer,
  )
  const told: string[] = []
  const client = new DoorClient(path, { onAway: (sentence) => void told.push(sentence), patienceMs: 0 })
  assert.equal(await client.ask('prepare', {}), 7)
  assert.equal(told.length, 3)
})

test('a stopped command waits no longer for a service that is away', async (context) => {
  const stopping = new AbortController()
  const onAway = () => stopping.abort('SIGINT')
  const path = join(await temporaryDirectory(context), 'dsc.sock')
  await assert.rejects(new DoorClient(path, { onAway, signal: stopping.signal }).greet(), {
    code: 'INTERRUPTED',
    message: 'stopped by SIGINT',
  })
})

test('a stopped command gives back what it holds, to a service that is there', async (context) => {
  const signal = AbortSignal.abort('SIGTERM')
  const path = await serve(context, answer, cutOff)
  const client = new DoorClient(path, { onAway: () => {}, signal })
  assert.equal(await client.ask('releaseUses', {}), 7)
  await assert.rejects(client.ask('releaseUses', {}), { code: 'INTERRUPTED' })
})

for (const { what, code, rejects } of [
  {
    what: 'a defect',
    code: 'INTERNAL',
    rejects: { name: 'ServiceDefect', message: 'the service failed: no such table' },
  },
  {
    ...{ what: 'a code that only a newer version knows', code: 'BRAND_NEW' },
    rejects: {
      code: 'SERVICE_UNREACHABLE',
      message: 'the service failed: no such table',
      hint: 'look there',
    },
  },
])
  test(`a service that fails by ${what} is not away: nobody waits for it`, async (context) => {
    const error = { code, message: 'no such table', hint: 'look there' }
    const path = await serve(context, (response) => response.end(`${JSON.stringify({ error })}\n`))
    const told: string[] = []
    const client = new DoorClient(path, { onAway: (sentence) => void told.push(sentence) })
    await assert.rejects(client.ask('prepare', {}), rejects)
    assert.deepEqual(told, [])
  })
