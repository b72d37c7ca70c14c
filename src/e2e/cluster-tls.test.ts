import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../testing/certificate.js'
import { makeCluster } from './cluster.js'
import { waitFor, writeTree } from './world.js'

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
  assert.deepEqual(prepared.downloaded.origins, { store: 0, peers: { 'node-a': 5 } })
})
