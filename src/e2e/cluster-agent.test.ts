import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { makeCluster, TOKEN } from '../testing/cluster.js'
import { succeeds } from '../testing/dsc-processes.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { waitFor, writeTree } from '../testing/world.js'

/** Far more than a connection's buffers hold. */
const LARGE = 16 * 1024 * 1024

const AUTHORIZED = { authorization: `Bearer ${TOKEN}` }

/** One node with an agent and a dataset of a folder. */
async function makeServing(context: TestContext) {
  const source = await temporaryDirectory(context)
  await writeTree(source, {
    'a.txt': 'alpha',
    'deep/b c.txt': 'beta',
    'empty.txt': '',
    'large.bin': 'x'.repeat(LARGE),
  })
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b', 'node-c'],
    datasets: { flowers: { source: `file://${source}/` } },
  })
  const [node] = cluster.nodes
  const agent = await node!.startAgent()
  const prepared = await succeeds(node!.dsc('prepare', 'flowers', '--json', '--task', 'one'))
  const ask = async (path: string, headers: Record<string, string> = AUTHORIZED) => {
    const answer = await fetch(`${node!.url}${path}`, { headers })
    return { status: answer.status, text: await answer.text() }
  }
  return { cluster, node: node!, agent, ask, path: JSON.parse(prepared.stdout).path as string }
}

test('an agent shows nothing without its token, nor with a wrong one', async (context) => {
  const { ask } = await makeServing(context)
  const paths = [
    '/v1/datasets/flowers/',
    '/v1/datasets/flowers/files/a.txt',
    '/metrics',
    '/nothing',
    '/v2/prepare',
  ]
  for (const path of paths) {
    assert.equal((await ask(path, {})).status, 401, path)
    for (const wrong of [`Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(0, -1)}`, `Basic ${TOKEN}`, 'Bearer ']) {
      assert.equal((await ask(path, { authorization: wrong })).status, 401, `${path} ${wrong}`)
    }
  }
  assert.equal((await ask('/healthz', {})).status, 200)
  assert.deepEqual((await ask('/v1/datasets/flowers/files/a.txt')).text, 'alpha')
  assert.deepEqual((await ask('/v1/datasets/flowers/files/deep/b%20c.txt')).text, 'beta')
  assert.deepEqual((await ask('/v1/datasets/flowers/files/empty.txt')).text, '')
})

test('no path or query leads out of the manifest', async (context) => {
  const { ask, node, path } = await makeServing(context)
  await writeFile(join(path, 'stray.txt'), 'not in the manifest')
  const tricks = [
    '../manifest.db',
    '..%2fmanifest.db',
    '%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd',
    '%2fetc%2fpasswd',
    'a.txt%00',
    'deep',
    'deep/..%2fa.txt',
    'stray.txt',
    'a.txt/',
    '%',
  ]
  for (const trick of tricks) {
    assert.equal(await rawStatus(node.url, `/v1/datasets/flowers/files/${trick}`), 404, trick)
  }
  for (const trick of ['../../etc/passwd', '/etc/passwd', 'stray.txt']) {
    const query = new URLSearchParams({ source: 'file:///', key: trick, size: '10' })
    assert.equal((await ask(`/v1/datasets/flowers/object?${query}`)).status, 404, trick)
    assert.equal((await ask(`/v1/datasets/..%2f..%2fetc/object?${query}`)).status, 404, trick)
  }
  assert.equal((await ask('/v1/copies/..%2f..%2frecord/manifest')).status, 404)
})

test('ranges are served exactly, and impossible ones refused', async (context) => {
  const { node } = await makeServing(context)
  const ask = async (range: string) => {
    const headers = { ...AUTHORIZED, range }
    const answer = await fetch(`${node.url}/v1/datasets/flowers/files/a.txt`, { headers })
    return [answer.status, answer.headers.get('content-range'), await answer.text()]
  }
  assert.deepEqual(await ask('bytes=1-3'), [206, 'bytes 1-3/5', 'lph'])
  for (const range of ['bytes=3-1', 'bytes=0-5', 'bytes=9-10', 'bytes=-1', 'bytes=0-1,3-4', 'lines=0-1']) {
    assert.equal((await ask(range))[0], 416, range)
  }
})

test('a thousand slow connections do not keep others from being served, and are cut off', async (context) => {
  const { node, ask } = await makeServing(context)
  const port = Number(new URL(node.url).port)
  const sockets: Socket[] = []
  context.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  let closed = 0
  for (let index = 0; index < 1000; index++) {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow'),
    )
    socket.on('error', () => {})
    socket.on('close', () => {
      closed += 1
    })
    socket.resume()
    sockets.push(socket)
  }
  await waitFor('a thousand connections', () => sockets.every((socket) => !socket.connecting))
  assert.equal((await ask('/v1/datasets/flowers/files/a.txt')).text, 'alpha')
  await waitFor('the slow ones to be cut off', () => closed === 1000, 60_000)
  assert.equal((await ask('/v1/datasets/flowers/files/a.txt')).text, 'alpha')
})

test('a thousand clients that ask for much and take nothing cost little memory, and others are served', async (context) => {
  const { node, ask, agent } = await makeServing(context)
  const port = Number(new URL(node.url).port)
  const sockets: Socket[] = []
  context.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (let index = 0; index < 1000; index++) {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        `GET /v1/datasets/flowers/files/large.bin HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`,
      ),
    )
    socket.on('error', () => {})
    socket.pause()
    sockets.push(socket)
  }
  await waitFor('a thousand connections', () => sockets.every((socket) => !socket.connecting))
  for (let round = 0; round < 5; round++) {
    assert.equal((await ask('/v1/datasets/flowers/files/a.txt')).text, 'alpha')
  }
  const residentBytes = await readResident(agent.process.pid!)
  assert.ok(residentBytes < 600 * 1024 ** 2, `the agent takes ${residentBytes} bytes`)
})

async function readResident(pid: number): Promise<number> {
  const match = /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1]) * 1024
}

test('too large a body or head is refused', async (context) => {
  const { node, ask } = await makeServing(context)
  const answer = await fetch(`${node.url}/v2/prepare`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: 'x'.repeat(400_000),
  })
  assert.equal(answer.status, 400)
  assert.equal((await ask('/healthz', { 'x-long': 'x'.repeat(40_000) })).status, 431)
})

test('an agent exports metrics, and leaves the record when it is stopped', async (context) => {
  const { node, ask, agent } = await makeServing(context)
  const { text } = await ask('/metrics')
  assert.match(text, /^dsc_copies\{state="ready"\} 1$/m)
  assert.match(text, /^dsc_leases\{purpose="use"\} 1$/m)
  assert.match(text, /^dsc_staged_total 1$/m)
  assert.match(text, new RegExp(`^dsc_staged_bytes_total\\{from="store"\\} ${9 + LARGE}$`, 'm'))
  agent.process.kill('SIGTERM')
  await succeeds(agent.finished)
  const asked = await node.dsc('prepare', 'flowers', '--nodes', 'node-a', '--task', 'two')
  assert.notEqual(asked.code, 0)
  assert.match(asked.stderr, /no agent reports from node-a/)
})

test('an agent is ready once other nodes can find it, and not before; it lives all the time', async (context) => {
  const { nodes, recordUrl } = await makeCluster(context, { nodes: ['node-a'], datasets: {} })
  const [node] = nodes
  assert.equal((await node!.dsc('status')).code, 0) // makes the tables
  const database = new pg.Client(recordUrl)
  database.on('error', () => {}) // the server ends with the test
  await database.connect()
  await database.query('BEGIN')
  await database.query('LOCK TABLE nodes IN EXCLUSIVE MODE') // can be read, not written
  const health = () =>
    fetch(`${node!.url}/readyz`).then(
      async (answer) => [answer.status, JSON.parse(await answer.text()).status],
      () => undefined,
    )
  const agent = node!.start('agent')
  await waitFor('an answer of the agent', async () => (await health()) !== undefined)
  assert.deepEqual(await health(), [503, 'the record does not answer'])
  assert.equal((await fetch(`${node!.url}/healthz`)).status, 200)
  await database.end() // and with it the lock
  await waitFor('the report of the agent', async () => (await health())?.[0] === 200)
  agent.process.kill('SIGTERM')
  assert.equal((await agent.finished).code, 0)
})

test('an agent refuses to be open to other machines without a token', async (context) => {
  const cluster = await makeCluster(context, {
    nodes: ['node-a'],
    datasets: {},
    agent: { listen: '0.0.0.0:0', tokenFile: undefined },
  })
  const finished = await cluster.nodes[0]!.dsc('agent')
  assert.equal(finished.code, 3)
  assert.match(finished.stderr, /0\.0\.0\.0:0, which other machines reach, and there is no token/)
})

test('an agent grants no lease without an end, for a year or to nobody, and prepares nothing for it', async (context) => {
  const { node, cluster } = await makeServing(context)
  const source = JSON.parse((await node.dsc('dataset', 'show', 'flowers', '--json')).stdout).source as string
  const dataset = { name: 'birds', source, include: [], exclude: [] }
  const holder = { kind: 'ttl' }
  const yearMs = 365 * 86_400_000
  for (const lease of [
    { task: 'mine', holder },
    { task: 'mine', holder, expiresAtMs: null },
    { task: 'mine', holder, expiresAtMs: Date.now() + yearMs },
    { task: 'mine', holder: { kind: 'root' }, expiresAtMs: Date.now() + 1000 },
    { task: 'mine', holder: { kind: 'process', pid: 1 }, expiresAtMs: null },
    { task: 'mine', expiresAtMs: Date.now() + 1000 },
  ]) {
    for (const path of ['/v2/prepare', '/v1/reserve']) {
      const answer = await fetch(`${node.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}` },
        body: JSON.stringify({ dataset, lease }),
      })
      assert.equal(answer.status, 400, `${path} ${JSON.stringify(lease)}`)
      assert.match(await answer.text(), /"code":"USAGE","message":"lease/)
    }
  }
  const { leases } = JSON.parse((await node.dsc('leases', '--json')).stdout) as { leases: { task: string }[] }
  assert.deepEqual(
    leases.map(({ task }) => task),
    ['one'],
  )
  const year = await cluster.nodes[1]!.dsc('prepare', 'flowers', '--task', 'two', '--ttl', '365d')
  assert.equal(year.code, 2)
  assert.match(year.stderr, /expected at most 30d, found "365d"; dsc lock keeps a copy for longer/)
})

test('tokens: machines are changed one after the other, and one that may only read has nothing prepared', async (context) => {
  const directory = await temporaryDirectory(context)
  await writeTree(join(directory, 'source'), { 'a.txt': 'alpha' })
  const tokenFile = join(directory, 'token')
  const [old, fresh, reading] = ['the old token of all', 'the new token of all', 'a token for reading only']
  await writeFile(tokenFile, `${old}\n${fresh}\nread ${reading}\n`)
  const { nodes } = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: { flowers: { source: `file://${join(directory, 'source')}/` } },
    agent: { tokenFile },
  })
  const [a, b] = nodes
  assert.equal((await a!.dsc('prepare', 'flowers', '--task', 'one')).code, 0)
  await a!.startAgent()
  const prepareOnA = async (shown: string) => {
    await writeFile(tokenFile, `${shown}\n`) // the agent has read its own long ago
    return b!.dsc('prepare', 'flowers', '--task', 'two', '--nodes', 'node-a')
  }
  for (const token of [old, fresh]) assert.equal((await prepareOnA(token)).code, 0, token)
  const wrong = await prepareOnA('a token that nobody knows')
  assert.match(wrong.stderr, /node-a: its agent .* does not accept the token/)
  const refused = await prepareOnA(`read ${reading}`)
  assert.equal(refused.code, wrong.code)
  assert.match(refused.stderr, /node-a: its agent .* lets the token of this machine only read/)
  const answer = await fetch(`${a!.url}/v2/prepare`, {
    method: 'POST',
    headers: { authorization: `Bearer ${reading}` },
    body: '{}',
  })
  assert.equal(answer.status, 403)
  await rm(join(directory, 'source'), { recursive: true }) // only node-a has it now
  const taken = await succeeds(b!.dsc('prepare', 'flowers', '--task', 'two', '--json'))
  assert.deepEqual(JSON.parse(taken.stdout).downloaded.origins, { storeBytes: 0, peerBytes: { 'node-a': 5 } })
})

/** fetch would tidy the path up. */
async function rawStatus(url: string, path: string): Promise<number> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\nconnection: close\r\n\r\n`,
      )
    })
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(Number(text.split(' ')[1])))
  })
}
