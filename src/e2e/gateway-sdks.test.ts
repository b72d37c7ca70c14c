import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { startHubServer } from '../testing/hub-server.js'
import { startS3Server } from '../testing/s3-server.js'
import { makeWorld, type World } from '../testing/world.js'

/** Commands that start the clients of a language; '': what builds them is missing. `npm run test:gateway` names them. */
const PROGRAMS = {
  Go: process.env.DSC_TEST_GATEWAY_GO,
  Java: process.env.DSC_TEST_GATEWAY_JAVA,
  JavaScript: process.env.DSC_TEST_GATEWAY_JAVASCRIPT,
}
const HTTP = { missing: ['NoSuchKey', '404'], denied: ['AccessDenied', '403'] } as const
const OF_JAVA = { missing: ['NoSuchKeyException', '404'], denied: ['AccessDeniedException', '403'] } as const
/** How each client calls its failures, with HTTP's status where it tells that. */
const CLIENTS: Readonly<Record<string, ClientRow>> = {
  'aws-sdk-go-v2': {
    ...HTTP,
    language: 'Go',
    absent: ['types.NotFound', '404'],
    missing: ['types.NoSuchKey', '404'],
  },
  'minio-go': { ...HTTP, language: 'Go' },
  'aws-sdk-java': { ...OF_JAVA, language: 'Java', failed: ['S3Exception', '412'] },
  'aws-sdk-java-netty': { ...OF_JAVA, language: 'Java', failed: ['S3Exception', '412'] },
  // It asks for the head before it gets, and that refusal has no body to name the failure.
  'aws-sdk-java-crt': {
    ...OF_JAVA,
    language: 'Java',
    missing: ['S3Exception', '404'],
    absent: OF_JAVA.missing,
    failed: ['S3Exception', '412'],
  },
  s3a: {
    language: 'Java',
    missing: ['FileNotFoundException', '0'],
    denied: ['AccessDeniedException', '0'],
    hasConditions: false,
  },
  'aws-sdk-js': { ...HTTP, language: 'JavaScript', absent: ['NotFound', '404'] },
  'minio-js': {
    language: 'JavaScript',
    missing: ['NoSuchKey', '0'],
    absent: ['NotFound', '0'],
    denied: ['AccessDenied', '0'],
    hasConditions: false,
  },
}
interface ClientRow {
  readonly language: keyof typeof PROGRAMS
  /** For GetObject. */
  readonly missing: readonly [name: string, status: string]
  /** For HeadObject; absent: as for GetObject. */
  readonly absent?: readonly [name: string, status: string]
  readonly denied: readonly [name: string, status: string]
  /** Where If-Match does not hold. */
  readonly failed?: readonly [name: string, status: string]
  /** Whether it can ask with If-Match; default: yes. */
  readonly hasConditions?: boolean
}

function whySkip(language: keyof typeof PROGRAMS): string | false {
  if (PROGRAMS[language] === undefined) return 'npm run test:gateway runs it'
  return PROGRAMS[language] === '' && `nothing here builds ${language}`
}

const LARGE_BYTES = 12_000_000
/** Of a client that takes a refusal for one; one that tries again needs longer. */
const REFUSED_WITHIN_MS = 5000
const objects: Readonly<Record<string, Buffer>> = {
  ...Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`many/${i}`, randomBytes(100)])),
  'a/1.txt': Buffer.from('one'),
  'a/b c/ü+=.bin': randomBytes(70_000),
  empty: Buffer.alloc(0),
  'large.bin': randomBytes(LARGE_BYTES),
}
const keys = Object.keys(objects).toSorted()

const server = await startS3Server()
after(() => server.close())

for (const [name, row] of Object.entries(CLIENTS)) {
  const skip = whySkip(row.language)
  for (const when of ['ready', 'arriving', 'passed'] as const)
    test(`${name} reads a bucket that is ${when}, and hears why it cannot`, { skip }, async (t) => {
      const { gateway, bucket, isReady } = await openGateway(t, when)
      const ask = startClient(t, [...PROGRAMS[row.language]!.split(' '), name, gateway])
      const get = (key: string, span = '', match = '') => ask('get', bucket, key, span, match)
      assert.deepEqual(
        (await ask('list', bucket, 'many/')).toSorted(),
        ['ok', ...keys.filter((key) => key.startsWith('many/'))].toSorted(),
      )
      assert.deepEqual(await get('a/1.txt'), answer('a/1.txt'))
      assert.equal(isReady(), when === 'ready')
      const large = objects['large.bin']!
      const [, digest, size, etag] = await get('large.bin', 'bytes=1000000-1999999')
      assert.deepEqual([digest, size], [sha256(large.subarray(1_000_000, 2_000_000)), '1000000'])
      assert.deepEqual((await ask('parts', bucket, 'large.bin')).slice(0, 3), answer('large.bin').slice(0, 3))
      assert.deepEqual(await ask('head', bucket, 'large.bin'), ['ok', '', String(LARGE_BYTES), etag])
      for (const key of keys) assert.deepEqual(await get(key), answer(key))
      assert.deepEqual((await ask('list', bucket, '')).slice(1).toSorted(), keys)
      const refuses = async (expected: readonly string[], ...words: readonly string[]) => {
        const said = await ask(...words)
        assert.deepEqual(said.slice(0, 3), ['error', ...expected], said.join(' '))
      }
      if (row.hasConditions !== false) {
        assert.deepEqual(await get('a/1.txt', '', `"${md5(objects['a/1.txt']!)}"`), answer('a/1.txt'))
        const failed = row.failed ?? ['PreconditionFailed', '412']
        await refuses(failed, 'get', bucket, 'a/1.txt', '', '"other"')
      }
      await refuses(row.missing, 'get', bucket, 'a/none')
      await refuses(row.absent ?? row.missing, 'head', bucket, 'a/none')
      const beganMs = performance.now()
      await refuses(row.denied, 'put', bucket, 'a/new')
      const tookMs = performance.now() - beganMs
      assert.ok(tookMs < REFUSED_WITHIN_MS, `the refusal took ${Math.round(tookMs)} ms`)
    })
}

test('the hub’s JavaScript client reads a dataset of the gateway', {
  skip: whySkip('JavaScript'),
}, async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  const sha = hub.commit('datasets/org/rows', {
    'README.md': Buffer.from('# rows'),
    'data/large.bin': objects['large.bin']!,
  })
  const datasets = { rows: { source: 'hf://datasets/org/rows', endpoint: hub.endpoint } }
  const world = await makeWorld(t, { agent: { listen: '127.0.0.1:0' }, datasets })
  const gateway = await startGateway(world)
  const program = PROGRAMS.JavaScript!.split(' ')
  const { stdout } = await promisify(execFile)(program[0]!, [
    program[1]!.replace('clients', 'hub'),
    gateway,
    'org/rows',
  ])
  assert.deepEqual(JSON.parse(stdout), {
    files: { 'README.md': sha256(Buffer.from('# rows')), 'data/large.bin': sha256(objects['large.bin']!) },
    commits: [sha],
    sha,
    exists: false,
    failures: ['null', 404],
  })
})

/** A gateway before a bucket of `objects` that the cache has, is getting (for some seconds), or has no room for. */
async function openGateway(t: TestContext, when: 'ready' | 'arriving' | 'passed') {
  const bucket = await server.makeBucket()
  for (const [key, body] of Object.entries(objects)) await server.putObject(bucket, key, body)
  const world = await makeWorld(t, {
    server,
    agent: { listen: '127.0.0.1:0' },
    ...(when === 'passed' ? { cache: { minFree: '1PiB' } } : {}),
    ...(when === 'arriving' ? { stage: { bandwidthLimit: '24Mbit/s' } } : {}),
    datasets: {
      all: { source: `s3://${bucket}/`, endpoint: server.endpoint, region: 'us-east-1', pathStyle: true },
    },
  })
  if (when === 'ready') assert.equal((await world.dsc('prepare', 'all')).code, 0)
  const gateway = await startGateway(world)
  const isReady = () => world.query("SELECT 1 FROM copies WHERE state = 'ready'").length > 0
  return { gateway, bucket, isReady }
}

async function startGateway(world: World): Promise<string> {
  const agent = world.start(['agent', '--gateway', '127.0.0.1:0', '--json'])
  const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
  return (JSON.parse(String(line)) as { gateway: string }).gateway
}

/** A client that answers questions of a line each. */
function startClient(t: TestContext, words: readonly string[]) {
  const child = spawn(words[0]!, words.slice(1), { stdio: ['pipe', 'pipe', 'pipe'] })
  t.after(() => child.kill())
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return async (...question: readonly string[]): Promise<readonly string[]> => {
    child.stdin.write(`${question.join('\t')}\n`)
    const { value } = await lines.next()
    if (value === undefined) assert.fail(`${words.join(' ')} ended:\n${stderr}`)
    return value.split('\t')
  }
}

function answer(key: string): readonly string[] {
  const body = objects[key]!
  return ['ok', sha256(body), String(body.length), md5(body)]
}

function sha256(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex')
}

function md5(body: Buffer): string {
  return createHash('md5').update(body).digest('hex')
}
