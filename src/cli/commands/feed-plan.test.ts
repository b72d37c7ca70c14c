import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openFeedEngine } from '../../feed/engine/open-feed-engine.js'
import { SessionServer } from '../../feed/session/session-server.js'
import { folderSupply } from '../../feed/sources/folder-supply.js'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))

/** A folder of 1,000 samples of 10,000 bytes, and `dsc feed plan` for it. */
function makeDataset(context: TestContext) {
  const directory = makeTestFolder(context)
  const folder = join(directory, 'samples')
  writeSamples(folder, 1000, () => 10_000)
  const plan = async (...words: string[]) => {
    const child = spawn(process.execPath, [DSC, 'feed', 'plan', folder, '--memory', '8MiB', ...words], {
      env: { ...process.env, XDG_CACHE_HOME: join(directory, 'cache') },
    })
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { status: child.exitCode, stdout, stderr }
  }
  return { directory, folder, plan }
}

test('a plan says how long training will wait, in words and in JSON', async (context) => {
  const { plan } = makeDataset(context)
  const time = ['--step-ms', '0.2', '--fixed-ms', '1', '--bandwidth', '320MB/s']
  const { stall, cost, k } = JSON.parse((await plan(...time, '--json')).stdout)
  assert.deepEqual(cost, { fixedMs: 1, bytesPerMs: 320_000 })
  assert.ok(k > 64)
  assert.equal(stall.supplyBytesPerSecond, 320e6)
  assert.ok(stall.demandBytesPerSecond < 3200e6, 'some comes from Cache_next')
  // A batch takes 2 ms if it is read, 0.2 ms if it was kept.
  const waitMs = 1.8 * (stall.demandBytesPerSecond / 3200e6)
  const expected = waitMs / (0.2 + waitMs)
  assert.ok(Math.abs(stall.stallShare - expected) < 0.05, `${stall.stallShare} instead of ${expected}`)
  const asRate = JSON.parse((await plan('--rate', '320000', ...time.slice(2), '--json')).stdout)
  assert.deepEqual(asRate.stall, stall)
  assert.match(
    (await plan(...time)).stdout,
    /expected stall +\d+\.\d\d % of the time, for the nodes send too slowly/,
  )
})

test('a plan says what a rehearsal of the feed did, and waits for nothing that memory holds', async (context) => {
  const { plan } = makeDataset(context)
  const words = ['--memory', '64MiB', '--batch', '50', '--nodes', '4', '--step-ms', '120']
  const { stdout, stderr } = await plan(...words, '--fixed-ms', '0.3', '--bandwidth', '1.2GB/s', '--json')
  const found = JSON.parse(stdout)
  assert.equal(stderr, '')
  assert.deepEqual([found.isRehearsed, found.carryShare, found.requestsPerLaterEpoch], [true, 1, 0])
  assert.ok(found.requestsPerEpoch >= 4)
  assert.deepEqual([found.stall.stallShare, found.stall.missTriggerStallShare], [0, 0])
})

test('memory that leaves a request less than a batch is told, with how much would be enough', async (context) => {
  const { plan } = makeDataset(context)
  const short = await plan('--memory', '3MiB', '--batch', '64')
  const [, memory] = /leaves \d+ samples? a request.*\n {2}try: --memory (\d+MiB), or a smaller --batch/.exec(
    short.stderr,
  )!
  assert.equal((await plan('--memory', memory!, '--batch', '64')).stderr, '')
  assert.equal((await plan('--k', '1')).stderr, '', 'it was asked for')
})

test('how long training waits is not guessed: what a request costs must be given or have been measured', async (context) => {
  const { plan, folder, directory } = makeDataset(context)
  const without = await plan('--step-ms', '4')
  assert.equal(without.status, 2)
  assert.match(without.stderr, /--measured/)
  const engine = openFeedEngine(
    folderSupply(await indexSamples(folder, { cacheFolder: join(directory, 'cache') })),
    {
      memoryBytes: 2 ** 23,
    },
  )
  context.after(() => engine.close())
  const server = await SessionServer.open({ engine, socketPath: join(directory, 's') })
  context.after(() => server.close())
  const early = await plan('--step-ms', '4', '--measured', server.socketPath)
  assert.match(early.stderr, /has not measured yet/)
  for (let i = 0; i < 4; i++)
    engine.sizing.add({
      askedAtMs: 0,
      silentSinceMs: 0,
      firstAtMs: 2,
      lastAtMs: 12,
      firstBytes: 100_000,
      bytes: 1_100_000,
    })
  const { cost } = JSON.parse(
    (await plan('--step-ms', '4', '--measured', server.socketPath, '--json')).stdout,
  )
  assert.deepEqual([cost.fixedMs, cost.bytesPerMs].map(Math.round), [1, 100_000])
})

test('a batch larger than the dataset is warned of, with what to do', async (context) => {
  const { plan } = makeDataset(context)
  const { status, stdout, stderr } = await plan('--batch', '300', '--ranks', '4')
  assert.equal(status, 0)
  assert.match(stdout, /steps per epoch +0\n/)
  assert.match(stderr, /a global batch of 1,200 samples.*\n {2}try: --batch 250 or less, or .*last='pad'\n/)
  const few = await plan('--batch', '1', '--ranks', '2000')
  assert.match(few.stderr, /try: fewer --ranks, or/)
  assert.equal((await plan('--batch', '250', '--ranks', '4')).stderr, '')
})

test('a plan without any memory ends, and says how much one batch needs', async (context) => {
  const { plan } = makeDataset(context)
  const { status, stdout } = await plan('--memory', '0')
  assert.equal(status, 0)
  assert.match(stdout, /too small +one batch needs \d/)
})
