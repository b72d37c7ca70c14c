import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Cache } from '../../cache/cache.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { fillRecord } from '../../testing/example-record.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { waitFor } from '../../testing/world.js'
import { createMetrics } from '../metrics/metrics.js'
import { startAgentServer } from '../server/agent-server.js'
import { signLink } from '../server/page-link.js'
import { pageRoutes } from './page-routes.js'
import { StatusPage } from './status-page.js'

const TOKEN = 'a token that all agents share'

/** The page of an agent over a record with five nodes and 100 copies; without `token`, it needs none. */
async function servePage(context: TestContext, token: string | undefined) {
  const root = await temporaryDirectory(context)
  const record = await openSqliteRecord(`${root}/record.db`)
  await fillRecord(record, { copies: 100, nodes: 5, stagings: 1, nowMs: Date.now() })
  const cache = { record, node: 'gpu-01', root, nowMs: () => Date.now() } as Cache
  const page = new StatusPage(cache)
  const server = await startAgentServer({
    listen: { host: '127.0.0.1', port: 0 },
    node: 'gpu-01',
    tokens: token === undefined ? undefined : [{ text: token, mayOnlyRead: false }],
    tls: undefined,
    routes: [
      ...pageRoutes(page, cache, { isEverywhere: false, hasTokens: token !== undefined }),
      {
        name: 'object',
        methods: ['GET'],
        path: /^\/v1\/object$/,
        answer: async ({ response }) => void response.end(),
      },
    ],
    metrics: createMetrics(),
  })
  context.after(async () => {
    page.close()
    await server.stop(0)
    await record.close()
  })
  const url = `http://127.0.0.1:${server.address.port}`
  return {
    url,
    page,
    ask: async (path: string, headers: Record<string, string> = {}) => {
      const answer = await fetch(`${url}${path}`, { headers })
      const text = await answer.text()
      const isJson = answer.headers.get('content-type') === 'application/json'
      return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text }
    },
  }
}

/** Waits until the copies of all nodes are read: one reading leaves out those for which a slow machine has no time. */
function untilRead(page: StatusPage) {
  const isWhole = async () => (await page.status()).nodes.every(({ read }) => read)
  return waitFor('all nodes to be read', isWhole)
}

test('the files of the page may be had by anybody, what they show only with the token or a link', async (context) => {
  const { ask } = await servePage(context, TOKEN)
  for (const path of ['/', '/page/page.js', '/page/page.css'])
    assert.equal((await ask(path)).status, 200, path)
  const paths = [
    'nodes',
    'matrix',
    'transfers',
    'day',
    'names',
    'copies',
    'leases',
    'history',
    'why?dataset=a',
  ]
  const good = { authorization: `Bearer ${signLink(TOKEN, Date.now() + 60_000)}` }
  for (const path of paths.map((name) => `/v1/page/${name}`)) {
    assert.equal((await ask(path)).status, 401, path)
    assert.equal((await ask(path, { authorization: `Bearer ${TOKEN}` })).status, 200, path)
    assert.equal((await ask(path, good)).status, 200, path)
  }
  assert.equal((await ask('/v1/page/live')).status, 401)
  assert.equal((await ask('/v1/object', good)).status, 403, 'a link opens nothing but the page')
  const ended = { authorization: `Bearer ${signLink(TOKEN, Date.now() - 1000)}` }
  assert.equal((await ask('/v1/page/nodes', ended)).status, 401)
})

test('without a token the page is given under names of this machine only', async (context) => {
  const { ask, url } = await servePage(context, undefined)
  assert.equal((await ask('/v1/page/nodes')).status, 200)
  const { get } = await import('node:http')
  const statusAs = (host: string) =>
    new Promise((resolve) =>
      get(`${url}/v1/page/nodes`, { headers: { host } }, (answer) => resolve(answer.resume().statusCode)),
    )
  for (const host of ['localhost:7070', '127.0.0.1', '[::1]:80'])
    assert.equal(await statusAs(host), 200, host)
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:7070']) {
    assert.equal(await statusAs(host), 403, host)
  }
})

test('without a token nothing is given to a name that leads here from elsewhere, nor to another site', async (context) => {
  const { url } = await servePage(context, undefined)
  const { get } = await import('node:http')
  const statusOf = (headers: Record<string, string>) =>
    new Promise((resolve) =>
      get(`${url}/v1/object`, { headers }, (answer) => resolve(answer.resume().statusCode)),
    )
  assert.equal(await statusOf({}), 200)
  assert.equal(await statusOf({ origin: url }), 200)
  assert.equal(await statusOf({ host: 'evil.example:7070' }), 403)
  for (const origin of ['https://evil.example', 'http://127.0.0.1:1', 'null'])
    assert.equal(await statusOf({ origin }), 403, origin)
})

test('nothing but its own files may run in the page, and no path leads out of them', async (context) => {
  const { ask } = await servePage(context, undefined)
  const { headers, body } = await ask('/')
  assert.match(
    String(headers.get('content-security-policy')),
    /default-src 'none'; script-src 'self'; style-src 'self'/,
  )
  assert.doesNotMatch(body, /style=|onclick|<script(?! type="module" src="page\/page\.js")|https?:/)
  for (const path of ['/page/index.html', '/page/none.js', '/page/..%2fstatus-page.js', '/page/constructor'])
    assert.equal((await ask(path)).status, 404, path)
  const etag = String(headers.get('etag'))
  assert.equal((await ask('/', { 'if-none-match': etag })).status, 304)
})

test('the page with everything it loads is smaller than 150 KB, and its library than 55 KB', async (context) => {
  const { ask } = await servePage(context, undefined)
  const seen = new Map<string, number>()
  const load = async (path: string) => {
    if (seen.has(path)) return
    const { status, body } = await ask(path)
    assert.equal(status, 200, path)
    seen.set(path, Buffer.byteLength(body))
    const modules = body.matchAll(/from '\.\/([a-z]+\.js)'|(?:href|src)="page\/([a-z]+\.(?:css|js))"/g)
    for (const [, imported, linked] of modules) await load(`/page/${imported ?? linked}`)
  }
  await load('/')
  assert.ok(seen.size > 8, `${seen.size} files`)
  const library = seen.get('/page/uplot.js') ?? 0
  assert.ok(library > 30_000 && library < 55_000, `${library} bytes of uPlot`)
  assert.ok(seen.values().reduce((sum, bytes) => sum + bytes, 0) - library < 150_000)
})

test('the library of the page comes with its licence', async (context) => {
  const { ask } = await servePage(context, undefined)
  assert.match((await ask('/page/uplot.js')).body, /^\/\*! uPlot [\d.]+\nThe MIT License[\s\S]*Leon Sorokin/)
})

test('only the rows that are asked for are given, sorted and filtered', async (context) => {
  const { ask, page } = await servePage(context, undefined)
  await untilRead(page)
  const nodes = (await ask('/v1/page/nodes?from=1&count=2&sort=-node')).body
  assert.deepEqual(
    [nodes.total, nodes.rows.map(({ node }: { node: string }) => node)],
    [5, ['gpu-04', 'gpu-03']],
  )
  const matrix = (await ask('/v1/page/matrix?filter=DATASET-00&from=97&count=5&node-from=1&node-count=2'))
    .body
  assert.deepEqual([matrix.total, matrix.totalNodes, matrix.nodes], [99, 5, ['gpu-02', 'gpu-03']])
  assert.deepEqual(
    matrix.rows.map(({ dataset, cells }: { dataset: string; cells: readonly unknown[] }) => [
      dataset,
      cells.map((cell) => cell !== null),
    ]),
    [
      ['dataset-0098', [false, true]],
      ['dataset-0099', [false, false]],
    ],
  )
  const copies = (await ask('/v1/page/copies?node=gpu-01')).body
  assert.deepEqual([copies.rows.length, copies.isLast], [21, true])
  const wrong = [
    'nodes?sort=nothing',
    'nodes?count=201',
    'nodes?from=-1',
    'copies?after=x',
    'why',
    'nodes?sort=constructor',
    'leases?after=[1,2]',
  ]
  for (const path of wrong) assert.equal((await ask(`/v1/page/${path}`)).status, 400, path)
})

test('the day has curves of equal steps, each node, the most used datasets, and who holds the space', async (context) => {
  const { ask, page } = await servePage(context, undefined)
  await untilRead(page)
  const { body } = await ask('/v1/page/day')
  const curves = ['spaceBytes', 'receivedBytesPerSecond', 'peerBytesPerSecond', 'uses', 'hits', 'waiting']
  for (const curve of curves) assert.equal(body[curve].length, 288, curve)
  assert.equal(body.stepMs * 288, 86_400_000)
  const names = ['gpu-01', 'gpu-02', 'gpu-03', 'gpu-04', 'gpu-05']
  assert.deepEqual([body.totalNodes, body.nodes.map(({ node }: { node: string }) => node)], [5, names])
  const [first] = body.nodes
  assert.deepEqual([first.refusals.length, first.refusals.at(-1), body.nodes[1].refusals.at(-1)], [48, 1, 0])
  assert.ok(body.waiting.at(-1) >= 1, 'two jobs wait for the download')
  assert.deepEqual(
    body.holders.map(({ party }: { party: string | null }) => party),
    [null],
  )
  assert.ok(body.holders[0].bytes > body.holders[0].usedBytes && body.holders[0].usedBytes > 0)
})

test('names complete what is being typed', async (context) => {
  const { ask, page } = await servePage(context, undefined)
  await untilRead(page)
  const { body } = await ask('/v1/page/names?filter=99')
  assert.deepEqual([body.datasets, body.nodes], [['dataset-0099'], []])
  assert.equal((await ask('/v1/page/names?filter=gpu')).body.nodes.length, 5)
})

test('a viewer hears of changes, and the end of the agent ends the stream', async (context) => {
  const { url, page } = await servePage(context, undefined)
  const answer = await fetch(`${url}/v1/page/live`)
  assert.equal(answer.headers.get('content-type'), 'text/event-stream')
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const readWhole = async () => {
    for (;;) {
      const { value, done } = await reader.read()
      assert.ok(!done, text)
      text += value
      const told = text.matchAll(/^event: status\ndata: (.*)\n\n/gm).map(([, data]) => JSON.parse(data!))
      const whole = told.find(({ copies }) => copies >= 101) // a slow machine reads some nodes later
      if (whole) return whole
    }
  }
  const told = await readWhole()
  assert.deepEqual(
    [told.node, told.nodes, told.copies, told.transfers, told.problem],
    ['gpu-01', 5, 101, 1, null],
  )
  const [trouble] = told.troubles
  assert.deepEqual(
    [told.totalTroubles, trouble.kind, trouble.command],
    [1, 'refused', 'dsc why laion-huge --node gpu-01'],
  )
  page.close()
  while (!(await reader.read()).done);
})

test('the report is that of dsc report, read again after a minute, and says what it cannot read', async (context) => {
  const { ask } = await servePage(context, undefined)
  const { body } = await ask('/v1/page/report?since=30d&price=0.09')
  assert.equal(body.egressPricePerGigabyte, 0.09)
  assert.equal(body.refusals[0].dataset, 'laion-huge')
  assert.ok(body.totals.unused >= body.unused.length)
  const again = await ask('/v1/page/report?since=30d&price=0.09')
  assert.equal(again.body.until, body.until)
  const wrong = await ask('/v1/page/report?since=week')
  assert.equal(wrong.status, 400)
  assert.match(JSON.stringify(wrong.body), /since: expected a duration/)
})
