import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { listenLocally } from '../../../testing/listen-locally.js'
import { answerHub, HubRefusal, refuseHub } from './answer-hub.js'
import { parseHubRequest } from './parse-hub-request.js'

const COMMIT = 'c'.repeat(40)

/** A hub with one repository whose files nobody looks at. */
async function startHub(context: TestContext): Promise<string> {
  const unread = () => Promise.reject(new Error('no files are needed'))
  const snapshot = { commit: COMMIT, folder: '', look: unread, send: unread }
  const server = createServer((request, response) => {
    const operation = parseHubRequest(request.url ?? '')
    assert.ok(operation)
    answerHub(operation, async () => snapshot, { request, response }).catch((error: unknown) => {
      assert.ok(error instanceof HubRefusal)
      refuseHub({ request, response }, error)
    })
  })
  const port = await listenLocally(server, context)
  return `http://127.0.0.1:${port}`
}

test('a hub tells the branch that it has of a repository', async (context) => {
  const answer = await fetch(`${await startHub(context)}/api/models/org/name/refs`)
  const { branches } = (await answer.json()) as { branches: unknown }
  assert.deepEqual(branches, [{ name: 'main', ref: 'refs/heads/main', targetCommit: COMMIT }])
})

for (const { method, path, status } of [
  { method: 'GET', path: '/api/spaces/org/name', status: 404 },
  { method: 'GET', path: '/api/models/org/name/discussions', status: 404 },
  { method: 'POST', path: '/api/models/org/name/preupload/main', status: 501 },
]) {
  test(`${method} ${path}, which it does not know, is answered with ${status} as a hub does`, async (context) => {
    const answer = await fetch((await startHub(context)) + path, { method })
    assert.equal(answer.status, status)
    assert.match(((await answer.json()) as { error: string }).error, /repositories/)
  })
}
