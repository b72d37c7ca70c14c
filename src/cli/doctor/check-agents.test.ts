import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { probeAgent } from '../../agent/calls/probe-agent.js'
import { NODE_HEADER } from '../../sources/peer-wire.js'
import { listenLocally } from '../../testing/listen-locally.js'

/** A server that answers as an agent would; returns its URL. */
async function serve(context: TestContext, status: number, headers: Record<string, string>): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status, headers).end())
  const port = await listenLocally(server, context)
  return `http://127.0.0.1:${port}`
}

for (const { name, status, node, reason } of [
  { name: 'can be used', status: 404, node: 'b', reason: undefined },
  { name: 'refuses the token', status: 401, node: 'b', reason: /token/ },
  { name: 'is another node', status: 404, node: 'c', reason: /node c answers there/ },
  { name: 'is no agent', status: 404, node: undefined, reason: /no agent/ },
]) {
  test(`doctor finds that an agent ${name}`, async (context) => {
    const url = await serve(context, status, node === undefined ? {} : { [NODE_HEADER]: node })
    const access = { token: 'x', ca: undefined }
    const found = await probeAgent({ node: 'b', url }, access, new AbortController().signal)
    if (reason === undefined) assert.equal(found, undefined)
    else assert.match(found!.reason, reason)
  })
}

test('doctor finds that nobody answers', async () => {
  const access = { token: 'x', ca: undefined }
  const found = await probeAgent(
    { node: 'b', url: 'http://127.0.0.1:1' },
    access,
    new AbortController().signal,
  )
  assert.match(found!.reason, /ECONNREFUSED/)
})
