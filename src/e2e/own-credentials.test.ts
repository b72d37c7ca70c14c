import assert from 'node:assert/strict'
import { chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { type FaultProxy, startFaultProxy } from '../testing/fault-proxy.js'
import { type NodeService, SERVICE, startNodeService } from '../testing/node-service.js'
import { type S3Server, startS3Server } from '../testing/s3-server.js'
import { ADA, BOB, findObstacle, type Owner } from '../testing/several-users.js'
import { waitFor } from '../testing/world.js'

const NOT_PERMITTED = 7
const LARGE_BYTES = 12 * 1024 * 1024
/** Users' secret key: wherever else it is found, somebody left it. s3rver accepts any. */
let SECRET = 'a-key-that-is-nowhere-else'

describe('a URL that is staged at the door with credentials of its user', { skip: findObstacle() }, () => {
  let server: S3Server
  let proxy: FaultProxy
  let service: NodeService
  let bucket: string
  const closes: (() => unknown)[] = []
  const close = { after: (one: unknown) => void closes.push(one as () => unknown) }

  before(async () => {
    server = await startS3Server()
    if (!server.isS3rver) SECRET = server.secretAccessKey
    delete process.env.DSC_TEST_S3_SECRET_KEY // what the test starts would have it in its environment
    bucket = await server.makeBucket()
    await server.putObject(bucket, 'small/a.txt', 'rose')
    await server.putObject(bucket, 'expiring/a.txt', 'tulip')
    for (const part of ['a', 'b', 'c'])
      await server.putObject(bucket, `large/${part}`, Buffer.alloc(LARGE_BYTES / 3, part))
    proxy = await startFaultProxy(server.endpoint, [
      { match: '/large/', fault: { kind: 'throttle', bytesPerSecond: 1_000_000 } },
      // Longer than the first keys live.
      { match: 'prefix=expiring', fault: { kind: 'delay', delayMs: 2500 } },
    ])
    service = await startNodeService(close, {
      // It names the server, and the service has no keys to it.
      datasets: { declared: { source: `s3://${bucket}/none/`, endpoint: proxy.endpoint } },
    })
    for (const owner of [ADA, BOB]) {
      mkdirSync(homeOf(owner), { mode: 0o700 })
      chownSync(homeOf(owner), owner.uid, owner.gid)
    }
    keep(ADA, `aws_access_key_id = ${server.accessKeyId}\naws_secret_access_key = ${SECRET}`)
  })
  after(async () => {
    for (const one of closes) await one()
    await proxy?.close()
    await server?.close()
  })

  const homeOf = ({ uid }: Owner) => join(service.world.directory, `home-${uid}`)
  /** Writes the user's ~/.aws/config. */
  const keep = (owner: Owner, settings: string, endpoint = proxy.endpoint) => {
    const file = join(homeOf(owner), 'config')
    writeFileSync(file, `[default]\nregion = us-east-1\nendpoint_url = ${endpoint}\n${settings}\n`, {
      mode: 0o600,
    })
    chownSync(file, owner.uid, owner.gid)
  }
  const start = (owner: Owner, script: string) =>
    service.startShellAs(owner, script, {
      HOME: homeOf(owner),
      AWS_CONFIG_FILE: join(homeOf(owner), 'config'),
      AWS_EC2_METADATA_DISABLED: 'true',
    })
  const as = (owner: Owner, script: string) => start(owner, script).finished
  const rows = async (owner: Owner, command: string, field: string) =>
    JSON.parse((await as(owner, `dsc ${command} --json`)).stdout)[field] as readonly object[]

  test('is refused without them, and nothing is asked of the source', async () => {
    const asked = proxy.requests.length
    const refused = await as(BOB, `dsc prepare s3://${bucket}/small/`)
    assert.deepEqual([refused.code, refused.stdout], [NOT_PERMITTED, ''], refused.stderr)
    assert.equal(proxy.requests.length, asked)
  })

  test('is their copy alone', async () => {
    const prepared = await succeeds(as(ADA, `dsc prepare s3://${bucket}/small/ --task t`))
    const path = prepared.stdout.trim()
    assert.equal((await as(ADA, `cat ${path}/a.txt`)).stdout, 'rose')
    assert.match((await as(BOB, `cat ${path}/a.txt`)).stderr, /Permission denied/)
    assert.match((await as(BOB, `cat ${service.world.root}/record.db`)).stderr, /Permission denied/)
    assert.doesNotMatch(path, new RegExp(bucket))
    const asked = proxy.requests.length
    assert.equal((await as(ADA, `dsc prepare s3://${bucket}/small/ --task t`)).stdout.trim(), path)
    assert.equal(proxy.requests.length, asked)
  })

  test('is nothing that others hear of, or may name', async () => {
    for (const [command, field] of [
      ['status', 'copies'],
      ['history', 'events'],
    ] as const)
      assert.deepEqual(
        [await rows(BOB, command, field), (await rows(ADA, command, field)).length > 0],
        [[], true],
        command,
      )
    const [copy] = (await rows(ADA, 'status', 'copies')) as readonly { readonly dataset: string }[]
    assert.match(copy!.dataset, new RegExp(`^private-[0-9a-f]{8}\\.${ADA.uid}$`))
    for (const command of ['prepare', 'why'])
      assert.notEqual((await as(BOB, `dsc ${command} ${copy!.dataset}`)).code, 0, command)
    const plan = await as(BOB, `dsc prepare ${copy!.dataset} --plan`)
    assert.deepEqual([plan.code, plan.stdout], [NOT_PERMITTED, ''])
  })

  test('is nothing that the keys of another user open', async (context) => {
    if (server.isS3rver) return context.skip('s3rver accepts every signature: npm run test:s3')
    keep(BOB, 'aws_access_key_id = NOBODY\naws_secret_access_key = wrong')
    const denied = await as(BOB, `dsc prepare s3://${bucket}/small/ --task t`)
    assert.match(denied.stderr, /SOURCE_DENIED|refused|denied/i)
    assert.deepEqual([denied.code === 0, denied.stdout], [false, ''])
  })

  test('goes to no server that dsc.yaml does not name', async () => {
    keep(BOB, `aws_access_key_id = ${server.accessKeyId}\naws_secret_access_key = ${SECRET}`, server.endpoint)
    const refused = await as(BOB, `dsc prepare s3://${bucket}/small/ --task t`)
    assert.deepEqual([refused.code, refused.stdout], [NOT_PERMITTED, ''])
    assert.match(
      refused.stderr,
      /credentials go to AWS, the hub and the endpoints of declared datasets alone/,
    )
  })

  test('is not read again by an admin', async () => {
    const [copy] = (await rows(ADA, 'status', 'copies')) as readonly { readonly dataset: string }[]
    const refused = await service.as({ uid: 0, gid: 0 }, 'prepare', copy!.dataset, '--refresh', '--task', 't')
    assert.deepEqual([refused.code, refused.stdout], [NOT_PERMITTED, ''])
    assert.match(refused.stderr, /own credentials alone/)
  })

  test('is released by its URL', async () => {
    const released = await as(ADA, `dsc release s3://${bucket}/small/ --task t`)
    assert.equal(released.stdout, 'released 1 lease of task t\n')
  })

  test('goes on after the service was killed, and leaves the secret nowhere', async () => {
    const staging = start(ADA, `dsc prepare s3://${bucket}/large/ --task t --debug`)
    const isUnderWay = () => existingBytes(join(service.world.root, 'staging')) > LARGE_BYTES / 4
    await waitFor('half of it', isUnderWay)
    requireNoSecret('during the staging')
    const killed = await service.stop('SIGKILL')
    requireNoSecret('after the kill')
    await service.start()
    const prepared = await succeeds(staging.finished)
    assert.match(prepared.stderr, /waiting for it/)
    const copied = await readFile(join(prepared.stdout.trim(), 'b'))
    assert.ok(copied.equals(Buffer.alloc(LARGE_BYTES / 3, 'b')))
    for (const text of [prepared.stderr, killed!.stdout, killed!.stderr]) assert.ok(!text.includes(SECRET))
    requireNoSecret('at the end')
  })

  test('asks for new keys while its user waits, and says if the user has none', async () => {
    const counter = join(homeOf(ADA), 'asked')
    writeFileSync(counter, '')
    chownSync(counter, ADA.uid, ADA.gid)
    const keys = { Version: 1, AccessKeyId: server.accessKeyId, SecretAccessKey: SECRET }
    // Every call gives keys for 2 s, at most ALLOWED times.
    const program = join(homeOf(ADA), 'keys.mjs')
    writeFileSync(
      program,
      `import fs from 'node:fs'
fs.appendFileSync('${counter}', 'x')
if (fs.readFileSync('${counter}', 'utf8').length > Number(process.env.ALLOWED)) process.exit(1)
console.log(JSON.stringify({ ...${JSON.stringify(keys)}, Expiration: new Date(Date.now() + 2000).toISOString() }))
`,
    )
    chownSync(program, ADA.uid, ADA.gid)
    keep(ADA, `credential_process = ${process.execPath} ${program}`)
    const denied = await as(ADA, `ALLOWED=1 dsc prepare s3://${bucket}/expiring/ --task t`)
    assert.notEqual(denied.code, 0)
    assert.match(denied.stderr, /the credentials of this user have expired, and their dsc finds no new ones/)
    writeFileSync(counter, '')
    await succeeds(as(ADA, `ALLOWED=99 dsc prepare s3://${bucket}/expiring/ --task t`))
    assert.ok(readFileSync(counter, 'utf8').length >= 2)
  })

  /** Looks at every file below the world's folder but the users' homes, and at every process of others. */
  function requireNoSecret(when: string) {
    const homes = [ADA, BOB].map(homeOf)
    for (const entry of readdirSync(service.world.directory, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      if (!entry.isFile() || homes.some((home) => path.startsWith(home))) continue
      assert.ok(!readFileSync(path).includes(SECRET), `${path} ${when}`)
    }
    const users = new Set([SERVICE, ADA, BOB].map(({ uid }) => uid))
    const isTheirs = (name: string) =>
      /^\d+$/.test(name) && users.has(statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid ?? 0)
    for (const pid of readdirSync('/proc').filter(isTheirs))
      for (const file of ['cmdline', 'environ'])
        assert.ok(!readProcess(`/proc/${pid}/${file}`).includes(SECRET), `/proc/${pid}/${file} ${when}`)
  }
})

function readProcess(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    return Buffer.alloc(0) // it has ended
  }
}

function existingBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ['a', 'b', 'c'].includes(entry.name))
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).blocks * 512, 0)
}
