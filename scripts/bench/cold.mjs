// From nothing to two epochs, behind a link of 1 Gb/s and 20 ms: dsc while it stages and staged first, MosaicML
// Streaming, LitData, s3torchconnector and a DataLoader over boto3, in turn.
// --sets of objects,shards; --scale: a fraction makes a short run; --steps: a training step as a part of the link's time
// for a batch; --data FOLDER: kept, and used again; --results FILE: each run is kept there, and joins those of earlier
// calls, so that several calls may make one page
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { loaderTables } from './cold/tables.mjs'
import { KEYS, makeFiles, s3Dataset, startShapedStore, writeSettings } from './harness/stores.mjs'

const LINK = { bytesPerSecond: 1e9 / 8, delayMs: 20 }
const BATCH = 64
const SAMPLE_BYTES = 100 * 1024
const SHARD_BYTES = 32 * 1024 * 1024
/** Exit status of a loader that is not installed. */
const MISSING = 77
/** As `unproven`, which comes before it and leaves the list of what is in the shards. */
const LISTED = 'listed'
/** A plain file is proven while it comes: these would be `arriving` again. */
const OF_SHARDS = ['unproven', LISTED]
/** A run that takes longer is ended, which its row says, and the others go on. */
const LIMIT_SECONDS = 180
/** Calls that make one page may run on several. */
const MACHINE = `${cpus().length} × ${cpus()[0].model}`

export const benchmark = {
  page: 'cold.md',
  options: {
    ...{ rounds: 1, sets: 'objects,shards', scale: 1, steps: '0,0.5,1', data: '', results: '' },
    loaders: 'arriving,unproven,listed,staged,mosaicml,litdata,s3torchconnector,boto3',
  },
  smoke: { scale: 0.001, steps: '0', loaders: 'arriving,unproven' },
  async run(bench) {
    const { given } = bench
    const kept = given.results && existsSync(given.results) ? JSON.parse(readFileSync(given.results)) : []
    const results = [...kept]
    const keep = (...runs) => {
      results.push(...runs.map((run) => ({ ...run, machine: MACHINE })))
      if (given.results) writeFileSync(given.results, JSON.stringify(results))
    }
    await measureSets(bench, keep)
    bench.section('loaders', loaderTables(results))
  },
}

async function measureSets(bench, keep) {
  const { sets, steps, rounds, loaders, scale, data } = bench.given
  const venv = bench.isSmoke ? 'scripts/python-venv.sh' : 'scripts/bench/cold/venv.sh'
  const python = join(execFileSync(venv, { encoding: 'utf8' }).trim(), 'bin/python')
  const sizes = {
    objects: Math.max(BATCH * 2, Math.round(20_000 * scale)),
    shards: Math.max(2, Math.round(64 * scale)),
  }
  const bucket = data ? resolve(data) : join(bench.folder, 'bucket')
  for (const set of sets.split(',')) {
    const count = sizes[set]
    makeData({ set, count, bucket, python, loaders })
    const store = await startShapedStore(bench, bucket, LINK)
    await readThrough(store.endpoint, set)
    for (const step of steps.split(',').map(Number))
      for (let round = 0; round < rounds; round++)
        for (const loader of loaders.split(','))
          if (set === 'shards' || !OF_SHARDS.includes(loader)) {
            const run = await measure(bench, { store, set, count, step, loader, python })
            if (run === undefined) bench.progress(`${loader} is not installed`)
            else keep(run)
            bench.progress(`${set}, step ${step}, round ${round + 1}, ${loader}: ${JSON.stringify(run)}`)
          }
    store.child.kill()
  }
}

/** A set as dsc and the AWS loaders read it, and in the formats that MosaicML Streaming and LitData want. */
function makeData({ set, count, bucket, python, loaders }) {
  const mark = join(bucket, `.${set}-${count}`)
  if (existsSync(mark)) return
  for (const name of [set, `${set}-mds`, `${set}-lit`])
    rmSync(join(bucket, name), { recursive: true, force: true })
  mkdirSync(bucket, { recursive: true })
  const pathOf = (index) => `${index % 100}/${String(index).padStart(6, '0')}.bin`
  const random = { bytes: SAMPLE_BYTES, pathOf, fill: (block) => randomFillSync(block) }
  if (set === 'objects') makeFiles(join(bucket, set), { objects: count, ...random })
  const words = [
    'scripts/bench/cold/make_data.py',
    bucket,
    count,
    SHARD_BYTES,
    SAMPLE_BYTES,
    set,
    loaders,
  ].map(String)
  const made = spawnSync(python, words, { stdio: ['ignore', 'ignore', 'inherit'] })
  if (made.status !== 0) throw new Error('the data of the benchmark could not be made')
  writeFileSync(mark, '')
}

/** Has the store read its files, so that nobody pays for its disk. */
async function readThrough(endpoint, set) {
  for (let token = ''; token !== undefined; ) {
    const page = await fetch(`${endpoint}/bench/?list-type=2&prefix=${set}&continuation-token=${token}`)
    token = /<NextContinuationToken>(.*)<\/NextContinuationToken>/.exec(await page.text())?.[1]
  }
}

/** One run from nothing, in an empty folder; undefined where the loader is not installed. */
async function measure(bench, { store, set, count, step, loader, python }) {
  const { endpoint, readSent } = store
  const scratch = mkdtempSync(join(bench.folder, 'run-'))
  writeSettings(scratch, { [set]: s3Dataset(endpoint, `${set}/`) })
  const lists = join(bench.folder, 'lists')
  if (loader !== LISTED) rmSync(lists, { recursive: true, force: true })
  const stepSeconds = (step * BATCH * SAMPLE_BYTES) / LINK.bytesPerSecond
  const env = {
    ...process.env,
    // The one that this runs on, for the dsc that Python starts.
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    ...{ XDG_CACHE_HOME: lists, DSC_BIN: resolve('bin/dsc.js'), PYTHONPATH: resolve('src/python') },
    // What the loaders find the store by; rows.py says the same to those that it starts.
    ...{ ...KEYS, AWS_EC2_METADATA_DISABLED: 'true' },
  }
  const before = await readSent()
  const ended = await runLoader(
    python,
    [loader === LISTED ? 'unproven' : loader, endpoint, set, scratch, stepSeconds],
    env,
  )
  const sent = (await readSent()) - before
  rmSync(scratch, { recursive: true, force: true })
  if (ended.status === MISSING) return undefined
  const total = count * (set === 'objects' ? SAMPLE_BYTES : SHARD_BYTES)
  const run = { set, count, step, loader, linkSeconds: total / LINK.bytesPerSecond }
  if (ended.signal) return { ...run, unfinished: LIMIT_SECONDS }
  if (ended.status !== 0)
    throw new Error(`${loader} of ${set} ended with ${ended.status}: ${ended.errors.slice(-3000)}`)
  const { first, epochs } = JSON.parse(ended.output.trim().split('\n').at(-1))
  return { ...run, first, epochs, copies: sent / total }
}

async function runLoader(python, words, env) {
  const child = spawn(python, ['scripts/bench/cold/rows.py', ...words.map(String)], {
    ...{ env, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
    ...{ timeout: 1000 * LIMIT_SECONDS, killSignal: 'SIGKILL' },
  })
  const printed = Promise.all([text(child.stdout), text(child.stderr)])
  const [status, signal] = await once(child, 'exit')
  try {
    process.kill(-child.pid, 'SIGKILL') // workers that outlive their loader
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
  const [output, errors] = await printed
  return { status, signal, output, errors }
}
