import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { startCountingStore } from '../testing/counting-store.js'
import { startS3Server } from '../testing/s3-server.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { makeWorld, s3Dataset } from '../testing/world.js'

/** Python with the clients: `npm run test:gateway` names it. */
const PYTHON = process.env.DSC_TEST_GATEWAY_PYTHON
/** Python with s3fs, which needs another botocore. */
const S3FS_PYTHON = process.env.DSC_TEST_S3FS_PYTHON
const CLIENTS = [
  ...['boto3', 'aws', 's5cmd', 'rclone', 'pyarrow', 'duckdb'],
  ...['s3torch', 's3fs', 'mosaicml', 'litdata'],
]
/** Those that read shards of their own. */
const SHARDS: Readonly<Record<string, string>> = { mosaicml: 'mds/', litdata: 'lit/' }
const skip = PYTHON === undefined && 'npm run test:gateway runs it'

const server = await startS3Server()
after(() => server.close())

/** Runs a client; not in this thread, in which the origin answers. */
async function run(
  words: readonly string[],
): Promise<{ readonly status: number | null; readonly stderr: string }> {
  const python = words[0] === 's3fs' ? S3FS_PYTHON : PYTHON
  const child = spawn(python!, ['scripts/gateway-clients.py', ...words], {
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, stderr }
}

test('10,000 objects are listed by every client that lists', { skip }, async (t) => {
  const folder = await temporaryDirectory(t)
  const keys = Array.from(
    { length: 10_000 },
    (_, i) => `many/${i % 7}/${String(i).padStart(5, '0')}`,
  ).toSorted()
  writeFileSync(join(folder, 'keys'), keys.join('\n'))
  const store = await startCountingStore(new Map(keys.map((key) => [key, Buffer.from(key)])))
  t.after(() => store.close())
  const datasets = { many: s3Dataset('bucket', 'many/', store.endpoint) }
  // Nothing is staged for a listing that is passed through.
  const world = await makeWorld(t, { cache: { minFree: '1PiB' }, agent: { listen: '127.0.0.1:0' }, datasets })
  const environment = { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x' }
  const agent = world.start(['agent', '--gateway', '127.0.0.1:0', '--json'], { environment })
  const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
  const { gateway } = JSON.parse(String(line)) as { gateway: string }
  const { status, stderr } = await run(['list', gateway, 'bucket', folder, folder])
  assert.equal(status, 0, stderr)
})

test('an object of more than 5 GiB is read by ranges while it comes', { skip }, async (t) => {
  const folder = await temporaryDirectory(t)
  const path = join(folder, 'huge.bin')
  // Random bytes wherever a length or an offset of 32 bits would go wrong, and holes between.
  const file = openSync(path, 'w')
  for (const gib of [0, 1, 2, 4, 5]) writeSync(file, randomBytes(16_000_000), 0, 16_000_000, gib * 2 ** 30)
  closeSync(file)
  const bucket = await server.makeBucket()
  await server.putFileInParts(bucket, 'huge.bin', path, 2 ** 26)
  const world = await makeWorld(t, {
    server,
    agent: { listen: '127.0.0.1:0' },
    datasets: {
      huge: { source: `s3://${bucket}/`, endpoint: server.endpoint, region: 'us-east-1', pathStyle: true },
    },
  })
  const agent = world.start(['agent', '--gateway', '127.0.0.1:0', '--json'])
  const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
  const { gateway } = JSON.parse(String(line)) as { gateway: string }
  const scratch = join(folder, 'scratch')
  mkdirSync(scratch)
  const { status, stderr } = await run(['huge', gateway, bucket, join(folder, 'huge'), scratch])
  assert.equal(status, 0, stderr)
})

for (const when of ['cold', 'ready'] as const)
  for (const name of CLIENTS)
    test(`${name} reads a ${when} bucket through the gateway as it is`, { skip }, async (t) => {
      const directory = await temporaryDirectory(t)
      const folder = join(directory, 'expected')
      const bucket = await server.makeBucket()
      const objects: Record<string, Buffer> = {
        empty: Buffer.alloc(0),
        'a/1.txt': Buffer.from('one'),
        'a/b c/ü+=.bin': randomBytes(70_000),
        'large.bin': randomBytes(20_000_000),
      }
      for (let i = 0; i < 25; i++) objects[`many/${i}`] = randomBytes(100)
      for (const [key, body] of Object.entries(objects)) {
        mkdirSync(dirname(join(folder, key)), { recursive: true })
        writeFileSync(join(folder, key), body)
      }
      execFileSync(PYTHON!, [
        'scripts/gateway-clients.py',
        'make-parquet',
        '-',
        '-',
        join(folder, 'rows.parquet'),
        '-',
      ])
      const shards = SHARDS[name]
      if (shards !== undefined) await run(['make-shards', '-', '-', folder, '-'])
      for (const key of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
        if (key in objects || key.endsWith('.parquet') || (shards && key.startsWith(shards)))
          if (statSync(join(folder, key)).isFile())
            await server.putObject(bucket, key, readFileSync(join(folder, key)))
      const world = await makeWorld(t, {
        server,
        agent: { listen: '127.0.0.1:0' },
        datasets: {
          all: { source: `s3://${bucket}/`, endpoint: server.endpoint, region: 'us-east-1', pathStyle: true },
        },
      })
      if (when === 'ready') assert.equal((await world.dsc('prepare', 'all')).code, 0)
      const agent = world.start(['agent', '--gateway', '127.0.0.1:0', '--json'])
      const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
      const { gateway } = JSON.parse(String(line)) as { gateway: string }
      mkdirSync(join(directory, 'scratch'))
      const { status, stderr } = await run([name, gateway, bucket, folder, join(directory, 'scratch')])
      if (status === 77) t.skip(`${name} is not installed`)
      else assert.equal(status, 0, stderr)
    })
