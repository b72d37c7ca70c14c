import assert from 'node:assert/strict'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { nameHolder, PASS_MS, signPass } from '../agent/server/copy-pass.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { openTestFeedClient } from '../testing/feed-client.js'
import { findFreePort } from '../testing/free-port.js'
import { type NodeService, SERVICE, startNodeService } from '../testing/node-service.js'
import { startPostgresServer } from '../testing/postgres-server.js'
import { sampleBytes } from '../testing/sample-folder.js'
import { ADA, BOB, findObstacle, type Owner } from '../testing/several-users.js'
import { s3Dataset, waitFor } from '../testing/world.js'

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

/** Two nodes, each with a service and its door, which alone know the agents' token; `grains` lies in stripes on both. */
async function startServices(t: TestContext, readers?: readonly string[]): Promise<Striped> {
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
    const agent = { listen, tokenFile }
    const service = await startNodeService(t, { record, node, agent, datasets: { grains } })
    return { service, url: `http://${listen}` }
  }
  const [a, b] = [await start('node-a'), await start('node-b')]
  const words = [
    'prepare',
    'grains',
    '--stripe',
    'node-a,node-b',
    '--task',
    'mine',
    '--config',
    a.service.config,
  ]
  const prepared = await a.service.world.start(words, { owner: SERVICE, environment: { HOME: folder } })
    .finished
  assert.equal(prepared.code, 0, prepared.stderr)
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

test('who is no reader gets nothing of stripes; and a pass that is forged, expired or of another copy opens none', {
  skip: findObstacle(),
}, async (t) => {
  const striped = await startServices(t, [`user:uid-${ADA.uid}`])
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
