// What the list of samples costs: how long tar shards take to be listed, beside `tar tf` of the same files, and what a
// feed then holds beside its arena, per sample. Usage: npm run bench:sample-list -- [samples] [shards] [runs]
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const [SAMPLES, SHARDS, RUNS] = [3_000_000, 16, 3].map((usual, i) => Number(process.argv[2 + i] ?? usual))
const SAMPLE_BYTES = 60
const SCRIPT = fileURLToPath(import.meta.url)

if (process.env.DSC_BENCH_FOLDER) await list(process.env.DSC_BENCH_FOLDER)
else compare()

function compare() {
  const root = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
  process.on('exit', () => rmSync(root, { recursive: true, force: true }))
  const data = join(root, 'data')
  mkdirSync(data)
  const paths = Array.from({ length: SHARDS }, (_, shard) => writeShard(data, shard))
  const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0)
  process.stdout.write(
    `${SAMPLES} samples of ${SAMPLE_BYTES} bytes in ${SHARDS} shards, ${(bytes / 1e9).toFixed(2)} GB, ${availableParallelism()} cores\n`,
  )
  const tarMs = []
  const dscMs = []
  let memory
  for (let run = 0; run < RUNS; run++) {
    tarMs.push(timeOf(() => listByTar(paths)))
    memory = JSON.parse(
      execFileSync(process.execPath, [SCRIPT], {
        env: { ...process.env, DSC_BENCH_FOLDER: data },
        encoding: 'utf8',
      }),
    )
    dscMs.push(memory.listMs)
  }
  const mib = (size) => `${(size / 2 ** 20).toFixed(0)} MiB`
  const allowed = SAMPLES * 64 + 100 * 2 ** 20
  process.stdout.write(
    `tar tf, one shard after the other  ${describe(tarMs)}\n` +
      `dsc                                ${describe(dscMs)}: ${(median(dscMs) / median(tarMs)).toFixed(2)} × tar tf\n` +
      `the list, just made                ${mib(memory.listedBytes)}\n` +
      `a feed, in its second epoch        ${mib(memory.feedBytes)} beside its arena, ${mib(memory.mostBytes)} at most; allowed ${mib(allowed)}\n` +
      `pages of the program itself        ${mib(memory.programBytes)}, not counted: processes share them, and the system can drop them\n`,
  )
}

/** In a process of its own, for its memory: lists, feeds an epoch and a bit, and says what that took. */
async function list(data) {
  const { keepHeapSmall } = await import('../../dist/platform/small-heap.js')
  keepHeapSmall() // as dsc feed serve does
  const { indexSamples } = await import('../../dist/samples/index-samples.js')
  const { openFeedEngine } = await import('../../dist/feed/engine/open-feed-engine.js')
  const { folderSupply } = await import('../../dist/feed/sources/folder-supply.js')
  const startedAt = performance.now()
  const folder = await indexSamples(data, { cacheFolder: undefined })
  const listMs = performance.now() - startedAt
  const listedBytes = held()
  const engine = openFeedEngine(folderSupply(folder), { memoryBytes: 64 * 2 ** 20, threads: 2 })
  await engine.ready()
  const shape = { batchSize: 1024, world: 1, rank: 0, replicate: 1, last: 'drop' }
  const stream = engine.openStream(shape, 2)
  await stream.start(0, 0)
  const { stepsPerEpoch } = stream.sequence
  let mostBytes = 0
  for (let at = 0; at < stepsPerEpoch + Math.min(100, stepsPerEpoch); at++) {
    stream.release(await stream.read(Math.floor(at / stepsPerEpoch), at % stepsPerEpoch))
    await setImmediate() // as between the questions of a client
    if (at % 64 === 0) mostBytes = Math.max(mostBytes, held())
  }
  const feedBytes = held()
  await engine.close()
  process.stdout.write(
    JSON.stringify({ listMs, listedBytes, feedBytes, mostBytes, programBytes: programBytes() }),
  )
}

/** Memory that nobody else has: neither the arena, which is a file, nor the program, whose pages all its processes share. */
function held() {
  return statusOf('RssAnon')
}

function programBytes() {
  return statusOf('RssFile')
}

function statusOf(name) {
  const { stdout } = spawnSync('grep', [name, `/proc/${process.pid}/status`], { encoding: 'utf8' })
  return Number(/(\d+) kB/.exec(stdout)[1]) * 1024
}

/** A shard of samples with one member each. */
function writeShard(folder, shard) {
  const path = join(folder, `${String(shard).padStart(4, '0')}.tar`)
  const fd = openSync(path, 'w')
  const count = Math.floor(((shard + 1) * SAMPLES) / SHARDS) - Math.floor((shard * SAMPLES) / SHARDS)
  const chunk = Buffer.alloc(1024 * 1024)
  for (let at = 0; at < count; ) {
    let fill = 0
    for (; at < count && fill < chunk.length; at++, fill += 1024)
      writeMember(chunk.subarray(fill, fill + 1024), `${shard}-${String(at).padStart(7, '0')}.txt`)
    writeSync(fd, chunk, 0, fill)
  }
  writeSync(fd, Buffer.alloc(1024))
  closeSync(fd)
  return path
}

function writeMember(block, name) {
  block.fill(0)
  block.write(name, 0)
  block.write('0000644\0', 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  block.write(`${SAMPLE_BYTES.toString(8).padStart(11, '0')}\0`, 124)
  block.write('00000000000\0', 136)
  block.write('        ', 148)
  block.write('0ustar\x0000', 156)
  let sum = 0
  for (let i = 0; i < 512; i++) sum += block[i]
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  block.write(name.repeat(8).slice(0, SAMPLE_BYTES), 512)
}

function listByTar(paths) {
  for (const path of paths) execFileSync('tar', ['tf', path], { stdio: 'ignore' })
}

function timeOf(work) {
  const startedAt = performance.now()
  work()
  return performance.now() - startedAt
}

function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1]
}

function describe(ms) {
  const seconds = (value) => (value / 1000).toFixed(2)
  return `${seconds(median(ms))} s (${seconds(Math.min(...ms))}–${seconds(Math.max(...ms))})`
}
