// `npm run bench:cold`: from nothing to two epochs, behind a link of 1 Gb/s and 20 ms: dsc while it stages and staged
// first, MosaicML Streaming, LitData, s3torchconnector and a DataLoader over boto3, in turn.
// Options: --rounds 3 --sets objects,shards --scale 1 (a fraction makes a short run) --steps 0,0.5,1 (a training step as
// a part of the link's time for a batch) --loaders … --write (docs/benchmarks/cold.md)
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const LOADERS = 'arriving,unproven,listed,staged,mosaicml,litdata,s3torchconnector,boto3'
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    sets: { type: 'string', default: 'objects,shards' },
    scale: { type: 'string', default: '1' },
    steps: { type: 'string', default: '0,0.5,1' },
    loaders: { type: 'string', default: LOADERS },
    write: { type: 'boolean', default: false },
  },
})
const LINK = { bytesPerSecond: 1e9 / 8, delayMs: 20 }
const BATCH = 64
const SAMPLE_BYTES = 100 * 1024
const SHARD_BYTES = 32 * 1024 * 1024
const MISSING = 77
/** As `unproven`, which comes before it and leaves the list of what is in the shards. */
const LISTED = 'listed'
const LIMIT_MS = 1_800_000
const root = fileURLToPath(new URL('../..', import.meta.url))
const python = join(
  execFileSync(join(root, 'scripts/bench/cold-venv.sh'), { encoding: 'utf8' }).trim(),
  'bin/python',
)
const scale = Number(values.scale)
const rounds = Number(values.rounds)
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-cold-'))
const bucket = join(workspace, 'bucket')
const samples = Math.max(BATCH * 2, Math.round(20_000 * scale))
const shards = Math.max(2, Math.round(64 * scale))
const results = []

try {
  makeData(values.sets.split(','))
  for (const set of values.sets.split(','))
    for (const step of values.steps.split(',').map(Number))
      for (let round = 0; round < rounds; round++)
        for (const loader of values.loaders.split(',')) await measure({ set, step, round, loader })
  const text = formatReport()
  process.stdout.write(text)
  if (values.write) writeFileSync(join(root, 'docs/benchmarks/cold.md'), text)
} finally {
  rmSync(workspace, { recursive: true, force: true })
}

/** Both sets as dsc and the AWS loaders read them, and in the formats that MosaicML Streaming and LitData want. */
function makeData(sets) {
  const objects = join(bucket, 'objects')
  for (let index = 0; sets.includes('objects') && index < samples; index++) {
    const path = join(objects, `${index % 100}`, `${String(index).padStart(6, '0')}.bin`)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, randomBytes(SAMPLE_BYTES))
  }
  const script = join(root, 'scripts/bench/cold_data.py')
  const made = spawnSync(
    python,
    [
      script,
      bucket,
      String(shards),
      String(SHARD_BYTES),
      String(SAMPLE_BYTES),
      sets.join(','),
      values.loaders,
    ],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  if (made.status !== 0) throw new Error('the data of the benchmark could not be made')
}

/** One run from nothing: a store of its own, so that its bytes are counted, and an empty folder. */
async function measure({ set, step, round, loader }) {
  const store = spawn(
    process.execPath,
    [join(root, 'scripts/bench/shaped-store.mjs'), bucket, LINK.bytesPerSecond, LINK.delayMs].map(String),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [port] = await once(createInterface({ input: store.stdout }), 'line')
  const endpoint = `http://127.0.0.1:${port}`
  const scratch = mkdtempSync(join(workspace, 'run-'))
  writeFileSync(
    join(scratch, 'dsc.yaml'),
    `record: sqlite://${scratch}/record.db\ncache: { root: ${scratch}/cache }\ndatasets:\n  ${set}: { source: 's3://bench/${set}/', endpoint: '${endpoint}', region: us-east-1, pathStyle: true }\n`,
  )
  const lists = join(workspace, 'lists')
  if (loader !== LISTED) rmSync(lists, { recursive: true, force: true })
  const stepSeconds = (step * BATCH * SAMPLE_BYTES) / LINK.bytesPerSecond
  await warm(endpoint)
  const before = await sentBytes(endpoint)
  const child = spawn(
    python,
    [
      join(root, 'scripts/bench/cold_rows.py'),
      loader === LISTED ? 'unproven' : loader,
      endpoint,
      set,
      scratch,
      `${stepSeconds}`,
    ],
    {
      env: {
        ...process.env,
        XDG_CACHE_HOME: lists,
        DSC_BIN: join(root, 'bin/dsc.js'),
        PYTHONPATH: join(root, 'src/python'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
    },
  )
  let [out, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  const [status] = await once(child, 'close')
  const sent = (await sentBytes(endpoint)) - before
  store.kill()
  rmSync(scratch, { recursive: true, force: true })
  const name = `${set}, step ${step}, round ${round + 1}: ${loader}`
  if (status === MISSING) return process.stderr.write(`${name}: not installed\n`)
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${errors.slice(-3000)}`)
  const { first, epochs } = JSON.parse(out.trim().split('\n').at(-1))
  results.push({ set, step, loader, first, epochs, sent })
  process.stderr.write(
    `${name}: first ${first.toFixed(2)} s, ${epochs.map((each) => each.toFixed(1))} s, ${(sent / 1e6).toFixed()} MB\n`,
  )
}

/** Has the store read its files once, so that nobody pays for its disk. */
async function warm(endpoint) {
  for (let token = ''; ; ) {
    const page = await (await fetch(`${endpoint}/bench/?list-type=2&continuation-token=${token}`)).text()
    token = /<NextContinuationToken>(.*)<\/NextContinuationToken>/.exec(page)?.[1]
    if (token === undefined) return
  }
}

async function sentBytes(endpoint) {
  return Number(await (await fetch(`${endpoint}/-/sent`)).text())
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}

function formatReport() {
  const command = `npm run bench:cold -- --rounds ${rounds} --sets ${values.sets} --scale ${scale} --steps ${values.steps} --loaders ${values.loaders} --write`
  const rows = []
  for (const set of values.sets.split(','))
    for (const step of values.steps.split(',').map(Number)) {
      const of = (loader) =>
        results.filter((each) => each.set === set && each.step === step && each.loader === loader)
      const figures = (loader) => {
        const runs = of(loader)
        if (runs.length === 0) return undefined
        const [first, one, two, sent] = [
          runs.map((run) => run.first),
          runs.map((run) => run.epochs[0]),
          runs.map((run) => run.epochs[1]),
          runs.map((run) => run.sent),
        ].map(median)
        return { first, one, two, sum: one + two, sent }
      }
      const own = figures('arriving')
      for (const loader of values.loaders.split(',')) {
        const found = figures(loader)
        if (!found) continue
        const { first, one, two, sum, sent } = found
        const ratio = own ? (sum / own.sum).toFixed(2) : ''
        rows.push(
          `| ${[set, step, loader, first.toFixed(2), one.toFixed(1), two.toFixed(1), sum.toFixed(1), ratio, (sent / 1e6).toFixed()].join(' | ')} |`,
        )
      }
    }
  return `# Cold start

\`${command}\` on ${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)} at the end; Node ${process.versions.node}.

From an empty cache to the end of the second epoch, behind a link of 1 Gb/s and 20 ms (a store that waits and paces its
answers), medians of ${rounds} rounds, all loaders in turn. Objects: ${samples} × 100 KiB; shards: ${shards} of 32 MiB.
A training step takes so much of the link's time for a batch of ${BATCH}. MosaicML Streaming and LitData read shards of
their own formats, shuffled in blocks; the others read what dsc reads. Whatever shuffles shards does not shuffle globally.

| set | step | loader | first batch s | epoch 1 s | epoch 2 s | both s | beside dsc arriving | MB from the store |
|---|--:|---|--:|--:|--:|--:|--:|--:|
${rows.join('\n')}
`
}
