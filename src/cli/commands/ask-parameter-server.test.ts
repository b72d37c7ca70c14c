import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { type TestContext, test } from 'node:test'
import { listenLocally } from '../../testing/listen-locally.js'
import { askParameterServer } from './ask-parameter-server.js'

async function ask(context: TestContext, listener: RequestListener, signal = context.signal) {
  const server = createServer(listener)
  context.after(() => server.close())
  const port = await listenLocally(server)
  return askParameterServer({ server: `http://127.0.0.1:${port}` }, { signal })
}

test('a central node’s status is returned, and its refusal told', async (context) => {
  const status = { version: 3, lastSteps: [3, 3] }
  assert.deepEqual(await ask(context, (_, response) => response.end(JSON.stringify(status))), status)
  const refuse: RequestListener = (_, response) =>
    response.writeHead(401).end('{"error":{"reason":"token","message":"it wants a token"}}')
  await assert.rejects(ask(context, refuse), {
    code: 'PARAMS_REFUSED',
    message: /: it wants a token$/,
    hint: '--token-file',
  })
})

for (const body of ['<html>', '', 'null', '7', '{}', '{"version":"1.2"}'])
  test(`a server that answers ${JSON.stringify(body)} is no central node`, async (context) => {
    await assert.rejects(
      ask(context, (_, response) => response.end(body)),
      { code: 'PARAMS_UNREACHABLE', message: /answers, but is no central node$/ },
    )
    await assert.rejects(
      ask(context, (_, response) => response.writeHead(404).end(body)),
      { code: 'PARAMS_REFUSED', message: /it answers 404$/ },
    )
  })

test('a question that the user stops rejects as interrupted, although the server did not answer', async (context) => {
  const stopping = new AbortController()
  await assert.rejects(
    ask(context, () => stopping.abort('SIGINT'), stopping.signal),
    { code: 'INTERRUPTED' },
  )
})
