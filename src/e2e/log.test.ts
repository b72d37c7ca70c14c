import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startFlowerStore } from '../testing/flower-store.js'
import { makeWorld, waitFor } from '../testing/world.js'

const { server, bucket, datasets } = await startFlowerStore()
after(() => server.close())

const SHOWN_BY_VERBOSE = [
  /^\S+Z verbose dsc [\d.]+ prepare flowers/m,
  /^\S+Z verbose opening the record: [\d.]+ ms$/m,
  new RegExp(`verbose GET \\S+${bucket}\\S*list-type=2\\S*: 200, \\d+ bytes in [\\d.]+ ms$`, 'm'),
  /verbose GET \S+\/flowers\/rose\/1\.jpg: 200, 6 bytes in [\d.]+ ms$/m,
  /verbose flowers: listing: [\d.]+ ms$/m,
  /verbose flowers: download: [\d.]+ ms$/m,
  /verbose ended with exit code 0 after [\d.]+ s$/m,
]
const SQL = /^\S+Z debug sql SELECT .*: [\d.]+ ms$/m

test('--verbose says what is asked of whom and how long each phase takes; --debug adds SQL, without its values', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const verbose = await world.dsc('prepare', 'flowers', '--task', 't', '--verbose')
  for (const line of SHOWN_BY_VERBOSE) assert.match(verbose.stderr, line)
  assert.doesNotMatch(verbose.stderr, /sql /)
  const debug = await world.dsc('prepare', 'birds', '--task', 'task-of-birds', '--debug')
  assert.match(debug.stderr, SQL)
  assert.doesNotMatch(debug.stderr, /debug .*task-of-birds/)
  for (const { stderr } of [verbose, debug]) {
    assert.doesNotMatch(stderr, /authorization|signature=|AWS4-HMAC/i)
    assert.ok(!stderr.includes(server.environment.AWS_SECRET_ACCESS_KEY!))
  }
})

test('DSC_LOG and --log-file say the same, also of a copy that is ready', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const file = join(world.directory, 'dsc.log')
  const first = await world.dsc('prepare', 'flowers', '--task', 't', '--log-file', file)
  assert.doesNotMatch(first.stderr, /verbose/)
  const logged = await readFile(file, 'utf8')
  for (const line of [...SHOWN_BY_VERBOSE, /verbose flowers: 3 files staged/]) assert.match(logged, line)
  const again = await world.start(['prepare', 'flowers', '--task', 't'], {
    environment: { DSC_LOG: 'debug' },
  }).finished
  assert.equal(again.stdout, first.stdout)
  assert.match(again.stderr, SQL)
  assert.equal((await world.dsc('prepare', 'flour', '--log-file', file)).code, 4)
  assert.match(await readFile(file, 'utf8'), /verbose dsc: .*flour/)
})

test('what is tried again is said with its reason', async (context) => {
  const nobody = { source: 's3://bucket/x/', endpoint: 'http://127.0.0.1:1', pathStyle: true }
  const world = await makeWorld(context, { server, datasets: { nobody } })
  const running = world.start(['prepare', 'nobody', '--task', 't', '--verbose'])
  let said = ''
  running.process.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await waitFor('a second attempt', () => /verbose .*127\.0\.0\.1:1.*; attempt 2 in \d+ ms/.test(said))
  running.process.kill('SIGTERM')
  await running.finished
  assert.match(said, /verbose GET http:\/\/127\.0\.0\.1:1\/bucket\S*: .*ECONNREFUSED.* after 0 bytes/)
})

test('an unwritable log file or an unknown level is a usage error', async (context) => {
  const world = await makeWorld(context, {})
  const lost = await world.dsc('status', '--log-file', join(world.directory, 'nowhere/dsc.log'))
  assert.equal(lost.code, 2)
  assert.match(lost.stderr, /cannot write the log .*nowhere\/dsc\.log: ENOENT/)
  const unknown = await world.start(['status'], { environment: { DSC_LOG: 'loud' } }).finished
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /expected DSC_LOG to be verbose or debug, found "loud"/)
})
