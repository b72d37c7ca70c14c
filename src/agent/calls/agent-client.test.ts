import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { listenLocally } from '../../testing/listen-locally.js'
import { cancelOnNode } from './agent-client.js'

/** Calls an agent that answers with these bytes, in pieces; settles as the call does. */
async function callAgent(context: TestContext, answer: string, pieceBytes = 5): Promise<void> {
  const server = createServer(async (request, response) => {
    await request.resume().toArray()
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const bytes = Buffer.from(answer)
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      response.write(bytes.subarray(at, at + pieceBytes))
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  })
  const port = await listenLocally(server, context)
  await cancelOnNode({
    node: 'n1',
    url: `http://127.0.0.1:${port}`,
    access: { token: undefined, ca: undefined },
    copyId: 'c1',
    signal: new AbortController().signal,
  })
}

for (const sign of ['\u2028', '\u2029', '\u0085', '\\n', '😀', '\u{e9}'])
  test(`what an agent says is one line, with ${JSON.stringify(sign)} in it, too`, (context) =>
    callAgent(context, `\n{"cancelled":"a${sign}b"}\n`))

test('a failure that names a key with U+2028 arrives whole, the sign escaped for terminals', (context) =>
  assert.rejects(
    callAgent(context, '{"error":{"code":"SOURCE_EMPTY","message":"nothing matches a\u2028*"}}\n'),
    { code: 'SOURCE_EMPTY', message: 'node n1: nothing matches a\\u2028*' },
  ))

test('a failure that names its node is left as it is, and one that names another node gets the name', async (context) => {
  for (const [said, told] of [
    ['node n1 is full', 'node n1 is full'],
    ['node n12 does not answer', 'node n1: node n12 does not answer'],
    ['node n1.rack does not answer', 'node n1: node n1.rack does not answer'],
  ])
    await assert.rejects(callAgent(context, `{"error":{"code":"AGENT_UNREACHABLE","message":"${said}"}}\n`), {
      message: told,
    })
})

for (const [name, answer, words] of [
  ['ends in the middle of a line', '{"cancelled":', /ended its answer in the middle/],
  ['says nothing', '\n\n', /ended its answer in the middle/],
  ['says what is no JSON', 'oops\n', /not a message of dsc: oops/],
] as const)
  test(`an agent that ${name} does not answer`, (context) =>
    assert.rejects(callAgent(context, answer), { code: 'AGENT_UNREACHABLE', message: words }))
