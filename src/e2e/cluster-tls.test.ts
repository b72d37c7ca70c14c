import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import { makeCertificate } from '../testing/certificate.js'
import { makeCluster, TOKEN } from '../testing/cluster.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { waitFor, writeTree } from '../testing/world.js'

test('agents with certificates serve each other encrypted, and one without the right authority is refused', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'dsc-test-tls-'))
  context.after(() => rm(directory, { recursive: true }))
  await writeTree(join(directory, 'source'), { 'a.txt': 'alpha' })
  const { certFile, keyFile } = makeCertificate(directory)
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: { flowers: { source: `file://${join(directory, 'source')}/` } },
    agent: { tls: { certFile, keyFile, caFile: certFile } },
  })
  const [a, b] = cluster.nodes
  assert.equal((await a!.dsc('prepare', 'flowers', '--task', 'one')).code, 0)
  await a!.startAgent()
  await assert.rejects(
    fetch(`${a!.url}/healthz`),
    (error: { cause?: { code?: string } }) => error.cause?.code === 'DEPTH_ZERO_SELF_SIGNED_CERT',
    'nobody told this process of the authority',
  )
  await rm(join(directory, 'source'), { recursive: true }) // only the peer has it now
  const prepared = await waitFor('a transfer from the peer', async () => {
    const finished = await b!.dsc('prepare', 'flowers', '--json', '--task', 'two')
    return finished.code === 0 && JSON.parse(finished.stdout)
  })
  assert.deepEqual(prepared.downloaded.origins, { storeBytes: 0, peerBytes: { 'node-a': 5 } })
})

for (const { name, storeBytes } of [
  { name: 'dsc-agent', storeBytes: 0 },
  { name: 'another-service', storeBytes: 5 },
])
  test(`agents ${storeBytes === 0 ? 'trust' : 'do not trust'} a certificate that they share and that names ${name}`, async (context) => {
    const directory = await temporaryDirectory(context)
    await writeTree(join(directory, 'source'), { 'a.txt': 'alpha' })
    const { certFile, keyFile } = makeCertificate(directory, { name })
    const { nodes } = await makeCluster(context, {
      nodes: ['node-a', 'node-b'],
      datasets: { flowers: { source: `file://${join(directory, 'source')}/` } },
      agent: { tls: { certFile, keyFile, caFile: certFile } },
    })
    const [a, b] = nodes
    assert.equal((await a!.dsc('prepare', 'flowers', '--task', 'one')).code, 0)
    await a!.startAgent()
    const { stdout } = await b!.dsc('prepare', 'flowers', '--json', '--task', 'two')
    assert.equal(JSON.parse(stdout).downloaded.origins.storeBytes, storeBytes)
  })

test('an agent without a certificate gets no token, and its copies are read from the store', async (context) => {
  const directory = await temporaryDirectory(context)
  await writeTree(join(directory, 'source'), { 'a.txt': 'alpha' })
  const { certFile } = makeCertificate(directory)
  const { nodes } = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: { flowers: { source: `file://${join(directory, 'source')}/` } },
  })
  const [a, b] = nodes
  assert.equal((await a!.dsc('prepare', 'flowers', '--task', 'one')).code, 0)
  await a!.startAgent()
  const config = parse(await readFile(b!.configPath, 'utf8'))
  config.agent.tls = { certFile, keyFile: certFile, caFile: certFile }
  await writeFile(b!.configPath, stringify(config))
  const { stdout } = await b!.dsc('prepare', 'flowers', '--json', '--task', 'two')
  assert.equal(JSON.parse(stdout).downloaded.origins.storeBytes, 5)
})

test('an agent tells that its certificate is about to end in its log, its metrics and to the doctor', async (context) => {
  const directory = await temporaryDirectory(context)
  const { certFile, keyFile } = makeCertificate(directory, { days: 3 })
  const { nodes } = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: {},
    agent: { tls: { certFile, keyFile, caFile: certFile } },
  })
  const [a, b] = nodes
  const agent = await a!.startAgent()
  const { text } = await askAgent(a!.url, '/metrics')
  const ends = Number(/^dsc_certificate_expiry_timestamp_seconds (\d+)$/m.exec(text)?.[1])
  assert.ok(Math.abs(ends - Date.now() / 1000 - 3 * 86_400) < 600, `it ends at ${ends}`)
  const seen = await b!.dsc('doctor')
  assert.match(seen.stdout, /agent of node-a .*its certificate expires in 2d23h/)
  assert.match(seen.stdout, /1 agent can be used/)
  assert.match(seen.stdout, /certificate .*cert\.pem: its certificate expires in 2d23h/)
  agent.process.kill('SIGTERM')
  assert.match((await agent.finished).stderr, /agent\.tls: its certificate expires in 2d23h/)
})

test('who does not trust the authority is told so, without advice for Node.js', async (context) => {
  const directory = await temporaryDirectory(context)
  const { certFile, keyFile } = makeCertificate(directory, { isSigned: true })
  await writeTree(join(directory, 'source'), { 'a.txt': 'alpha' })
  const { nodes } = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: { flowers: { source: `file://${join(directory, 'source')}/` } },
    agent: { tls: { certFile, keyFile } },
  })
  const [a, b] = nodes
  assert.equal((await a!.dsc('prepare', 'flowers', '--task', 'one')).code, 0)
  await a!.startAgent()
  const runs = [
    await b!.dsc('doctor'),
    await b!.dsc('doctor', '--json'),
    await b!.dsc('prepare', 'flowers', '--task', 'two', '--nodes', 'node-a'),
    await b!.dsc('prepare', 'flowers', '--task', 'two'),
  ]
  for (const { stdout, stderr } of runs) {
    assert.match(stdout + stderr, /unable to verify the first certificate/)
    assert.doesNotMatch(stdout + stderr, /use-system-ca/)
  }
  const history = await b!.dsc('history', 'flowers')
  assert.match(history.stdout, /5 B from the store; node-a unable to verify the first certificate/)
})

/** Accepts every certificate. */
async function askAgent(url: string, path: string): Promise<{ readonly text: string }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${TOKEN}` }
    get(`${url}${path}`, { rejectUnauthorized: false, agent: false, headers }, resolve).once('error', reject)
  })
  return { text: await readText(answer) }
}
