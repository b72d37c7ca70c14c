// `npm run bench:cold`: from nothing to two epochs, behind a link of 1 Gb/s and 20 ms: dsc while it stages and staged
// first, MosaicML Streaming, LitData, s3torchconnector and a DataLoader over boto3, in turn; and cold feeds on several
// nodes at once, in network namespaces (root, iproute2, the kernel's tbf).
// Options: --rounds 1 --sets objects,shards --scale 1 (a fraction makes a short run) --steps 0,0.5,1 (a training step as
// a part of the link's time for a batch) --loaders … --nodes 1,4,8 (`none`: without) --data FOLDER (kept, and used again)
// --results FILE (each run is kept there, and joins those of earlier calls: a page may be made by several)
// --write (docs/benchmarks/cold.md)
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { measureNodes } from './cold-nodes.mjs'
import { formatReport } from './cold-report.mjs'
import { readOptions } from './read-options.mjs'

const LOADERS = 'arriving,unproven,listed,staged,mosaicml,litdata,s3torchconnector,boto3'
const { values } = readOptions(import.meta.url, {
  options: {
    rounds: { type: 'string', default: '1' },
    sets: { type: 'string', default: 'objects,shards' },
    scale: { type: 'string', default: '1' },
    steps: { type: 'string', default: '0,0.5,1' },
    loaders: { type: 'string', default: LOADERS },
    nodes: { type: 'string', default: '1,4,8' },
    data: { type: 'string' },
    results: { type: 'string' },
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
/** A plain file is proven while it comes: these would be `arriving` again. */
const OF_SHARDS = ['unproven', LISTED]
/** What `dsc feed plan --cold` is asked before a run, to be held against it. */
const PLANNED = { arriving: 'arriving', unproven: 'unproven', listed: 'unproven', staged: 'staged' }
/** What the loaders find the store by; cold_rows.py says the same to those that it starts. */
const KEYS = {
  ...{ AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret', AWS_REGION: 'us-east-1' },
  AWS_EC2_METADATA_DISABLED: 'true',
}
/** A run that takes longer is ended, which its row says, and the others go on. */
const LIMIT_MS = 180_000
/** Calls that make one page may run on several. */
const MACHINE = `${cpus().length} × ${cpus()[0].model}`
const root = fileURLToPath(new URL('../..', import.meta.url))
const scale = Number(values.scale)
const rounds = Number(values.rounds)
const sets = values.sets.split(',').filter((set) => set !== 'none')
const loaders = values.loaders.split(',')
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-cold-'))
const bucket = values.data ?? join(workspace, 'bucket')
const sizes = {
  objects: Math.max(BATCH * 2, Math.round(20_000 * scale)),
  shards: Math.max(2, Math.round(64 * scale)),
}
const results = values.results && existsSync(values.results) ? JSON.parse(readFileSync(values.results)) : []
const python =
  sets.length > 0 &&
  join(execFileSync(join(root, 'scripts/bench/cold-venv.sh'), { encoding: 'utf8' }).trim(), 'bin/python')

try {
  for (const set of sets) {
    makeData(set)
    const store = await startStore(set)
    for (const step of values.steps.split(',').map(Number))
      for (let round = 0; round < rounds; round++)
        for (const loader of loaders)
          if (set === 'shards' || !OF_SHARDS.includes(loader))
            await measure({ store, set, step, round, loader })
    store.process.kill()
  }
  if (values.nodes !== 'none')
    keep(...(await measureNodes({ counts: values.nodes.split(',').map(Number), folder: workspace })))
  const text = formatReport(results, { limitSeconds: LIMIT_MS / 1000 })
  process.stdout.write(text)
  if (values.write) writeFileSync(join(root, 'docs/benchmarks/cold.md'), text)
} finally {
  rmSync(workspace, { recursive: true, force: true })
}

/** Adds to the results at once: a call that is cut short has measured what it has measured. */
function keep(...measured) {
  results.push(...measured.map((run) => ({ ...run, machine: MACHINE })))
  if (values.results) writeFileSync(values.results, JSON.stringify(results))
}

/** A set as dsc and the AWS loaders read it, and in the formats that MosaicML Streaming and LitData want. */
function makeData(set) {
  const mark = join(bucket, `.${set}-${sizes[set]}`)
  if (existsSync(mark)) return
  for (const name of [set, `${set}-mds`, `${set}-lit`])
    rmSync(join(bucket, name), { recursive: true, force: true })
  for (let index = 0; set === 'objects' && index < sizes.objects; index++) {
    const path = join(bucket, set, `${index % 100}`, `${String(index).padStart(6, '0')}.bin`)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, randomBytes(SAMPLE_BYTES))
  }
  const script = join(root, 'scripts/bench/cold_data.py')
  const words = [bucket, sizes.shards, SHARD_BYTES, SAMPLE_BYTES, set, values.loaders].map(String)
  const made = spawnSync(python, [script, ...words], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (made.status !== 0) throw new Error('the data of the benchmark could not be made')
  writeFileSync(mark, '')
}

/** A store that has read its files, so that nobody pays for its disk. */
async function startStore(set) {
  const words = [join(root, 'scripts/bench/shaped-store.mjs'), bucket, LINK.bytesPerSecond, LINK.delayMs]
  const store = spawn(process.execPath, words.map(String), { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = await once(createInterface({ input: store.stdout }), 'line')
  const endpoint = `http://127.0.0.1:${port}`
  for (let token = ''; token !== undefined; ) {
    const question = `${endpoint}/bench/?list-type=2&prefix=${set}&continuation-token=${token}`
    const page = await (await fetch(question)).text()
    token = /<NextContinuationToken>(.*)<\/NextContinuationToken>/.exec(page)?.[1]
  }
  return { process: store, endpoint }
}

/** One run from nothing, in an empty folder. */
async function measure({ store, set, step, round, loader }) {
  const { endpoint } = store
  const scratch = mkdtempSync(join(workspace, 'run-'))
  writeFileSync(
    join(scratch, 'dsc.yaml'),
    `record: sqlite://${scratch}/record.db\ncache: { root: ${scratch}/cache }\ndatasets:\n  ${set}: { source: 's3://bench/${set}/', endpoint: '${endpoint}', region: us-east-1, pathStyle: true }\n`,
  )
  const lists = join(workspace, 'lists')
  if (loader !== LISTED) rmSync(lists, { recursive: true, force: true })
  const stepSeconds = (step * BATCH * SAMPLE_BYTES) / LINK.bytesPerSecond
  const environment = {
    ...process.env,
    // The one that this runs on, for the dsc that Python starts.
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    XDG_CACHE_HOME: lists,
    DSC_BIN: join(root, 'bin/dsc.js'),
    PYTHONPATH: join(root, 'src/python'),
  }
  const plan = PLANNED[loader] && planCold({ set, start: PLANNED[loader], stepSeconds, scratch, environment })
  const before = await sentBytes(endpoint)
  const script = join(root, 'scripts/bench/cold_rows.py')
  const words = [loader === LISTED ? 'unproven' : loader, endpoint, set, scratch, `${stepSeconds}`]
  const child = spawn(python, [script, ...words], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
    detached: true,
  })
  let [out, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  const closed = once(child, 'close')
  const [status, signal] = await once(child, 'exit')
  try {
    process.kill(-child.pid, 'SIGKILL') // workers that outlive their loader
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
  await closed
  const sent = (await sentBytes(endpoint)) - before
  rmSync(scratch, { recursive: true, force: true })
  const name = `${set}, step ${step}, round ${round + 1}: ${loader}`
  if (status === MISSING) return process.stderr.write(`${name}: not installed\n`)
  const total = set === 'objects' ? sizes.objects * SAMPLE_BYTES : sizes.shards * SHARD_BYTES
  const run = { set, count: sizes[set], step, loader, linkSeconds: total / LINK.bytesPerSecond }
  if (signal) {
    keep({ ...run, unfinished: LIMIT_MS / 1000 })
    return process.stderr.write(`${name}: did not end in ${LIMIT_MS / 1000} s\n`)
  }
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${errors.slice(-3000)}`)
  const { first, epochs } = JSON.parse(out.trim().split('\n').at(-1))
  keep({ ...run, first, epochs, copies: sent / total, plan })
  process.stderr.write(
    `${name}: first ${first.toFixed(2)} s, ${epochs.map((each) => each.toFixed(1))} s, ${(sent / total).toFixed(3)} copies\n`,
  )
}

/** When the first batch and the end of epoch 1 are to come, s, as `dsc feed plan --cold` says. */
function planCold({ set, start, stepSeconds, scratch, environment }) {
  const cost = ['--fixed-ms', LINK.delayMs, '--bandwidth', `${LINK.bytesPerSecond / 1e6}MB/s`]
  const how = ['--start', start, '--batch', BATCH, '--step-ms', Math.max(0.01, stepSeconds * 1000), ...cost]
  const words = [environment.DSC_BIN, 'feed', 'plan', set, '--cold', ...how, '--json'].map(String)
  const options = { cwd: scratch, encoding: 'utf8', env: { ...environment, ...KEYS } }
  const { firstBatchMs, epochMs } = JSON.parse(execFileSync(process.execPath, words, options))
  return { first: firstBatchMs / 1000, epoch: epochMs === null ? null : epochMs / 1000 }
}

async function sentBytes(endpoint) {
  return Number(await (await fetch(`${endpoint}/-/sent`)).text())
}
