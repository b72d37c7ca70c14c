import assert from 'node:assert/strict'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createServer } from 'node:tls'
import { nameHolder, PASS_MS, signPass } from '../agent/server/copy-pass.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { makeCertificate } from '../testing/certificate.js'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { succeeds } from '../testing/dsc-processes.js'
import { openTestFeedClient } from '../testing/feed-client.js'
import { findFreePort } from '../testing/free-port.js'
import { type NodeService, SERVICE, startNodeService } from '../testing/node-service.js'
import { startPostgresServer } from '../testing/postgres-server.js'
import { sampleBytes } from '../testing/sample-folder.js'
import { ADA, BOB, findObstacle, GROUP, type Owner } from '../testing/several-users.js'
import { s3Dataset, waitFor } from '../testing/world.js'

/** An admin, and no root. */
const CARL: Owner = { uid: 64_003, gid: GROUP }
const COUNT = 120
const BATCH = 10
const LENGTH = 30_000
const SEED = 5
const TOKEN = 'a token that only services know'
/** The store's keys are those of the service: what its users have it refuses. */
const KEYS = { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x', AWS_EC2_METADATA_DISABLED: 'true' }
const nameOf = (id: number) => `${String(id).padStart(4, '0')}.bin`
const OBJECTS = new Map(
  Array.from({ length: COUNT }, (_, id) => [`grains/${nameOf(id)}`, Buffer.from(sampleBytes(id, LENGTH))]),
)
Object.assign(process.env, KEYS)

interface Striped {
  readonly services: readonly [NodeService, NodeService]
  readonly urls: readonly string[]
  readonly store: CountingStore
  readonly copyIds: readonly string[]
}

interface Settings {
  /** Of `grains`. Default: everybody. */
  readonly readers?: readonly string[]
  /** Of the agents: files of the certificate, the key and the authority. Default: no TLS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly caFile: string }
}

/**
 * Two nodes, each with a service and its door, which alone know the agents' token. Ada, who has nothing but a door, has
 * `grains` staged in stripes on both.
 */
async function startServices(t: TestContext, { readers, tls }: Settings = {}): Promise<Striped> {
  const postgres = await startPostgresServer()
  t.after(() => postgres.close())
  const record = await postgres.makeDatabase()
  const store = await startCountingStore(OBJECTS)
  t.after(() => store.close())
  const folder = makeFolder(t, SERVICE)
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 })
  chownSync(tokenFile, SERVICE.uid, SERVICE.gid)
  const grains = { ...s3Dataset('bucket', 'grains/', store.endpoint), ...(readers && { readers }) }
  const start = async (node: string) => {
    const listen = `127.0.0.1:${await findFreePort()}`
    const agent = { listen, tokenFile, admins: [`user:uid-${CARL.uid}`], ...(tls && { tls }) }
    const service = await startNodeService(t, { record, node, agent, datasets: { grains } })
    return { service, url: `${tls ? 'https' : 'http'}://${listen}` }
  }
  const [a, b] = [await start('node-a'), await start('node-b')]
  await succeeds(a.service.as(ADA, 'prepare', 'grains', '--stripe', 'node-a,node-b', '--task', 'mine'))
  const { copies } = JSON.parse((await a.service.as({ uid: 0, gid: 0 }, 'status', '--json')).stdout)
  const copyIds = copies.map(({ copyId }: { readonly copyId: string }) => copyId)
  return { services: [a.service, b.service], urls: [a.url, b.url], store, copyIds }
}

function makeFolder(t: TestContext, owner: Owner): string {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-feed-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  chownSync(folder, owner.uid, owner.gid)
  return folder
}

/** A feed of Ada, who has nothing but the door of her node. */
async function serveAsAda(t: TestContext, { services: [service] }: Striped) {
  const socket = join(makeFolder(t, ADA), 'feed.sock')
  const words = ['--socket', socket, '--seed', `${SEED}`, '--memory', '1MiB', '--k', '4']
  const feed = service.startAs(ADA, 'feed', 'serve', 'grains', ...words)
  const client = await waitFor('the feed', async () => {
    if (feed.process.exitCode !== null) assert.fail((await feed.finished).stderr)
    return existsSync(socket) && openTestFeedClient(socket, { batch: BATCH }).catch(() => undefined)
  })
  t.after(() => client.close())
  return { feed, client }
}

async function readEpoch(
  { client }: Awaited<ReturnType<typeof serveAsAda>>,
  epoch: number,
  atStep: (step: number) => unknown = () => {},
): Promise<void> {
  const read: number[] = []
  for await (const { ids, data, step } of client.read({ epoch, step: 0 })) {
    await atStep(step)
    for (const [at, id] of ids.entries())
      assert.ok(data[at]!.equals(Buffer.from(sampleBytes(id, LENGTH))), `bytes of sample ${id}`)
    read.push(...ids)
  }
  assert.deepEqual(read, [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })])
}

async function listLeases({ services: [service] }: Striped) {
  const { leases } = JSON.parse((await service.as(ADA, 'leases', '--json')).stdout)
  return leases.filter(({ task }: { readonly task: string }) => task !== 'mine')
}

test('a user with nothing but a door feeds stripes of two nodes, whose services may be killed', {
  skip: findObstacle(),
}, async (t) => {
  const striped = await startServices(t)
  const { services, store } = striped
  await store.close() // from here on, only the services have the samples
  const served = await serveAsAda(t, striped)
  assert.equal((await listLeases(striped)).length, 2)
  await readEpoch(served, 0)
  for (const [index, service] of services.entries())
    await readEpoch(served, 1 + index, async (step) => {
      if (step !== 2) return
      await service.stop('SIGKILL')
      await service.start()
    })
  served.feed.process.kill('SIGTERM')
  const { code, signal, stderr } = await served.feed.finished
  assert.deepEqual([code, signal], [0, null], stderr)
  assert.deepEqual(await listLeases(striped), [])
})

test('over TLS, stripes come from agents with the right certificate alone, who alone are shown a pass', {
  skip: findObstacle(),
}, async (t) => {
  const striped = await startServices(t, { tls: makeCertificateOf(t, SERVICE) })
  const { services, urls, store } = striped
  await store.close() // from here on, only the services have the samples
  const served = await serveAsAda(t, striped)
  await readEpoch(served, 0)
  await readEpoch(served, 1, async (step) => {
    if (step !== 2) return
    await services[1].stop('SIGKILL')
    const imposter = await startImposter(t, Number(new URL(urls[1]!).port))
    await waitFor('the feed to hang up', async () => imposter.ended() > 0 || imposter.bytes() > 0)
    assert.equal(imposter.bytes(), 0)
    await imposter.close()
    await services[1].start()
  })
})

/** An agent's place taken by a server whose certificate nobody of the cluster has signed. */
async function startImposter(t: TestContext, port: number) {
  const { certFile, keyFile } = makeCertificateOf(t, { uid: 0, gid: 0 })
  let [ended, bytes] = [0, 0]
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) })
  const sockets = new Set<Socket>()
  server.on('secureConnection', (socket) => socket.on('data', (piece) => (bytes += piece.length)))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => ended++))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  t.after(close)
  return { ended: () => ended, bytes: () => bytes, close }
}

function makeCertificateOf(t: TestContext, owner: Owner) {
  const folder = makeFolder(t, owner)
  const { certFile, keyFile } = makeCertificate(folder)
  for (const file of [certFile, keyFile]) chownSync(file, owner.uid, owner.gid)
  return { certFile, keyFile, caFile: certFile }
}

test('who is no reader gets nothing of stripes; and a pass that is forged, expired or of another copy opens none', {
  skip: findObstacle(),
}, async (t) => {
  const striped = await startServices(t, { readers: [`user:uid-${ADA.uid}`] })
  const { services, urls, copyIds } = striped
  const refused = await services[0].as(
    BOB,
    'feed',
    'serve',
    'grains',
    '--socket',
    join(makeFolder(t, BOB), 's'),
  )
  assert.equal(refused.code, 7, refused.stderr)
  assert.match(refused.stderr, /only user:uid-64001 may read this dataset/)
  await readEpoch(await serveAsAda(t, striped), 0)
  const asked = async (index: number, token: string | undefined, path = 'samples') => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await fetch(`${urls[index]}/v1/copies/${copyIds[index]}/${path}`, { headers })
    return answer.status
  }
  const by = nameHolder(ADA.uid, 'node-a')
  const good = { copyId: copyIds[1]!, by, expiresAtMs: Date.now() + PASS_MS / 2 }
  assert.ok([200, 202].includes(await asked(1, signPass(TOKEN, good))))
  assert.equal(await asked(1, signPass(TOKEN, good), 'manifest'), 401)
  for (const [what, pass] of Object.entries({
    none: undefined,
    expired: signPass(TOKEN, { ...good, expiresAtMs: Date.now() - 1000 }),
    'of another copy': signPass(TOKEN, { ...good, copyId: copyIds[0]! }),
    'of another token': signPass('a token that somebody made up', good),
    'with a later end': signPass(TOKEN, good).replace(/\d+\./, `${Math.ceil(Date.now() / 1000) + 500}.`),
    'with another user': signPass(TOKEN, good).replace('64001@', '64002@'),
  }))
    assert.equal(await asked(1, pass), 401, what)
})

test('a user at the door has declared datasets staged on other nodes, and an admin stripes repaired', {
  skip: findObstacle(),
}, async (t) => {
  const { services, store } = await startServices(t)
  const [service] = services
  const listHolders = async () => {
    const { leases } = JSON.parse((await service.as(ADA, 'leases', '--json')).stdout)
    return leases.map(
      ({ node, holder }: { readonly node: string; readonly holder: { readonly userId: number } }) => [
        node,
        holder.userId,
      ],
    )
  }
  assert.deepEqual((await listHolders()).toSorted(), [
    ['node-a', ADA.uid],
    ['node-b', ADA.uid],
  ])
  const nodes = ['prepare', 'flowers', '--nodes', 'node-b', '--task', 'there']
  const there = await succeeds(service.as(ADA, ...nodes, '--json'))
  assert.deepEqual(
    JSON.parse(there.stdout).nodes.map(({ node, files }: { node: string; files: number }) => [node, files]),
    [['node-b', 2]],
  )
  const held = await service.as(BOB, 'release', 'flowers', '--task', 'there')
  assert.equal(held.stdout, 'task there has no lease on flowers\n')
  for (const [owner, words, sentence] of [
    [
      ADA,
      ['prepare', 'https://data.example.org/x', '--nodes', 'all'],
      /anybody may stage declared datasets there/,
    ],
    [ADA, [...nodes, '--bandwidth-limit', '1GiB'], /only an admin may override the bandwidth of other nodes/],
    [ADA, ['prepare', 'flowers', '--remote'], /--remote prints a URL that opens with the token/],
  ] as const) {
    const refused = await service.as(owner, ...words)
    assert.deepEqual([refused.code, refused.stdout], [7, ''], refused.stderr)
    assert.match(refused.stderr, sentence)
  }
  await succeeds(service.as(CARL, ...nodes, '--bandwidth-limit', '1GiB'))
  for (const task of ['there', 'mine']) {
    await succeeds(service.as(ADA, 'release', '--all', '--any-node', '--task', task))
  }
  assert.equal((await services[1].as(CARL, 'evict', 'grains', '--yes', '--no-undo')).code, 0)
  const planned = await service.as(BOB, 'repair', 'grains', '--dry-run')
  assert.match(planned.stdout, /would fetch 2\/2 on node-b/, planned.stderr)
  const refused = await service.as(BOB, 'repair', 'grains')
  assert.deepEqual([refused.code, /only an admin may repair copies/.test(refused.stderr)], [7, true])
  const sent = store.sentBytes()
  const repaired = await service.as(CARL, 'repair', 'grains')
  assert.match(repaired.stdout, /^2\/2 +node-b +\//, repaired.stderr)
  assert.ok(store.sentBytes() > sent)
})
