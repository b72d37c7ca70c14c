import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { succeeds } from '../../testing/dsc-processes.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const RESNET = join(ROOT, 'fixtures/exchange/resnet-152.json')

/** Runs the real binary; resolves with its exit code even if it fails. */
async function dsc(...words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const run = promisify(execFile)(process.execPath, [join(ROOT, 'bin/dsc.js'), 'exchange', ...words])
  return await run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )
}

const LINK = ['--alpha-us', '500', '--gigabits', '10', '--ranks', '8']

test('exchange plan prints the same data as text and as JSON, and writes it to a file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-exchange-'))
  const out = join(folder, 'plan.json')
  const words = ['plan', '--model', RESNET, '--backward-ms', '200', ...LINK]
  const text = await dsc(...words)
  assert.match(text.stdout, /threshold 26\.31 MiB on the wire/)
  assert.match(
    text.stdout,
    /DistributedDataParallel\(model, bucket_cap_mb=52\.612, gradient_as_bucket_view=True\)/,
  )
  const { stdout } = await dsc(...words, '--json', '--out', out)
  const plan = JSON.parse(stdout)
  assert.equal(await readFile(out, 'utf8').then((raw) => JSON.parse(raw).hash), plan.hash)
  assert.deepEqual(plan.ddp, { bucket_cap_mb: 52.612, gradient_as_bucket_view: true })
  assert.equal(plan.buckets.flatMap(({ tensors }: { tensors: unknown[] }) => tensors).length, 467)
  for (const { name, calls } of plan.alternatives) assert.match(text.stdout, new RegExp(`${name} +${calls} `))
  await rm(folder, { recursive: true })
})

test('exchange plan advises against compression where converting costs more than the link', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-exchange-'))
  const path = join(folder, 'link.json')
  const link = { format: 'dsc.exchange.link/1', alphaMicroseconds: 200, bandwidthBytesPerSecond: 1.25e9 }
  await writeFile(path, JSON.stringify({ ...link, halfValuesPerSecond: 0.8e9 }))
  const words = ['plan', '--model', RESNET, '--backward-ms', '500', '--link', path, '--ranks', '2']
  const { stdout } = await dsc(...words, '--json')
  const plan = JSON.parse(stdout)
  assert.equal(plan.wire, 'fp32')
  assert.match(plan.wireExplanation, /no compression: at 10\.0 Gb\/s converting costs/)
  const text = await dsc(...words)
  assert.match(text.stdout, /2 ranks, fp32 on the wire/)
  assert.ok(text.stdout.includes(plan.wireExplanation))
  assert.match((await dsc(...words, '--wire', 'fp16')).stdout, /^fp16, as asked\.$/m)
  assert.match((await dsc(...words, '--wire', 'int8')).stdout, /^int8, as asked\.$/m)
  const slow = {
    ...link,
    bandwidthBytesPerSecond: 0.125e9,
    halfValuesPerSecond: 0.8e9,
    int8ValuesPerSecond: 0.2e9,
  }
  await writeFile(path, JSON.stringify(slow))
  assert.match((await dsc(...words)).stdout, /^int8: at 1\.0 Gb\/s sending 25 % of the bytes saves more/m)
  await rm(folder, { recursive: true })
})

test('exchange plan compares int8 between hosts, too, where two levels are faster', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-exchange-'))
  const path = join(folder, 'link.json')
  const link = {
    format: 'dsc.exchange.link/1',
    alphaMicroseconds: 100,
    bandwidthBytesPerSecond: 0.125e9,
    halfValuesPerSecond: 0.8e9,
    int8ValuesPerSecond: 0.2e9,
  }
  await writeFile(path, JSON.stringify(link))
  const job = ['--model', RESNET, '--backward-ms', '100', '--ranks', '8', '--ranks-per-host', '4']
  const words = ['plan', ...job, '--link', path, '--json']
  const plan = JSON.parse((await dsc(...words)).stdout)
  assert.deepEqual([plan.levels, plan.wire], [2, 'int8'])
  const asked = JSON.parse((await dsc(...words, '--wire', 'int8')).stdout)
  assert.deepEqual([asked.levels, asked.wire, asked.buckets], [2, 'int8', plan.buckets])
  await rm(folder, { recursive: true })
})

test('exchange plan takes ranks of different speed into account and says what they cost', async () => {
  const words = ['plan', '--model', RESNET, ...LINK, '--backward-ms']
  const { stdout } = await dsc(...words, '100,300')
  assert.match(stdout, /Backward takes 100 ms, 300 ms: the buckets are planned for the slowest/)
  const plan = async (times: string) => JSON.parse((await dsc(...words, times, '--json')).stdout)
  const [unlike, slow, fast] = [await plan('100,300'), await plan('300'), await plan('100')]
  assert.deepEqual(unlike.buckets, slow.buckets)
  assert.notDeepEqual(unlike.buckets, fast.buckets)
  assert.equal(slow.unlikeRanks, null)
})

for (const { name, words, message } of [
  { name: 'a model without its time', words: ['plan', '--model', RESNET, ...LINK], message: /--backward-ms/ },
  {
    name: 'an unknown link',
    words: ['plan', '--model', RESNET, '--backward-ms', '9', '--ranks', '2'],
    message: /link is unknown/,
  },
  {
    name: 'no rank',
    words: ['plan', '--model', RESNET, '--ranks', '0'],
    message: /expected a whole number of 1 or more, found "0"/,
  },
  {
    name: 'a missing file',
    words: ['plan', '--profile', 'nowhere.json', ...LINK],
    message: /nowhere\.json cannot be read/,
  },
  {
    name: 'a file of another kind',
    words: ['plan', '--profile', RESNET, ...LINK],
    message: /format: .*exchange\.profile\/1/,
  },
  {
    name: 'a rendezvous for strangers',
    words: ['serve', '--listen', '0.0.0.0:0'],
    message: /no token is set/,
  },
  {
    name: 'an empty file as its token',
    words: ['serve', '--listen', '0.0.0.0:0', '--token-file', '/dev/null'],
    message: /token file \/dev\/null is empty/,
  },
  { name: 'a rank without a number', words: ['bench', '--rendezvous', 'nowhere'], message: /needs --rank/ },
]) {
  test(`exchange refuses ${name} in one sentence, with exit code 2`, async () => {
    const { code, stdout, stderr } = await dsc(...words)
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /\n {4}at /)
    assert.equal(stdout, '')
  })
}

test('exchange bench runs two processes of its own and ends', async () => {
  const { stdout } = await succeeds(dsc('bench', '--mib', '0.25', '--repeats', '2', '--json'))
  const { rows } = JSON.parse(stdout)
  assert.equal(rows.length, 1)
  assert.ok(rows[0].medianMs > 0)
})

test('the data-parallel example reaches the loss of one process', async () => {
  const script = join(ROOT, 'scripts/examples/exchange-data-parallel.mjs')
  const words = [script, '--ranks', '2', '--steps', '120']
  const { stdout } = await promisify(execFile)(process.execPath, words)
  assert.match(stdout, /all ranks equal/)
})

test('a profile with an empty list says where the problem is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-exchange-'))
  const path = join(folder, 'profile.json')
  const profile = { format: 'dsc.exchange.profile/1', model: 'm', backwardMs: 1, gradients: [] }
  await writeFile(path, JSON.stringify(profile))
  const { code, stderr } = await dsc('plan', '--profile', path, ...LINK)
  assert.equal(code, 2)
  assert.match(stderr, /gradients/)
  await rm(folder, { recursive: true })
})
