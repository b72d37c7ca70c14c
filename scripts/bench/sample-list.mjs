// What the list of samples costs: how long tar shards take to be listed, beside `tar tf` of the same files, and what a
// feed then holds beside its arena.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { memoryOf } from './harness/processes.mjs'
import { count, formatBytes, median, ratio, span, table } from './harness/tables.mjs'

const SAMPLE_BYTES = 60
if (process.argv[1] === import.meta.filename) await list(process.argv[2])

export const benchmark = {
  options: { samples: 3_000_000, shards: 16, rounds: 3 },
  smoke: { samples: 4000, shards: 2, rounds: 1 },
  run(bench) {
    const { samples, shards, rounds } = bench.given
    const data = join(bench.folder, 'data')
    mkdirSync(data)
    const paths = Array.from({ length: shards }, (_, shard) => writeShard(data, { shard, shards, samples }))
    const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0)
    const [tar, dsc] = [[], []]
    let memory
    for (let round = 0; round < rounds; round++) {
      const startMs = performance.now()
      for (const path of paths) execFileSync('tar', ['tf', path], { stdio: 'ignore' })
      tar.push((performance.now() - startMs) / 1000)
      memory = JSON.parse(execFileSync(process.execPath, [import.meta.filename, data], { encoding: 'utf8' }))
      dsc.push(memory.listMs / 1000)
    }
    const rows = [
      ['`tar tf`, one shard after the other', `${span(tar)} s`],
      ['dsc', `${span(dsc)} s, ${ratio(median(dsc), median(tar))} ×`],
      ['the list, just made', formatBytes(memory.listedBytes)],
      ['a feed beside its arena, in its second epoch', formatBytes(memory.feedBytes)],
      ['the same, at most', formatBytes(memory.mostBytes)],
      ['allowed', formatBytes(samples * 64 + 100 * 2 ** 20)],
      ['pages of the program itself, which processes share', formatBytes(memory.programBytes)],
    ]
    const what = `${count(samples)} samples of ${SAMPLE_BYTES} bytes in ${shards} shards, ${(bytes / 1e9).toFixed(2)} GB.\n`
    bench.section('list', what, table(['', 'took'], rows))
  },
}

/** In a process of its own, for its memory: lists, feeds an epoch and a bit, and prints what that took. */
async function list(data) {
  const { keepHeapSmall } = await import('../../dist/platform/small-heap.js')
  keepHeapSmall() // as dsc feed serve does
  const { indexSamples } = await import('../../dist/samples/index-samples.js')
  const { openFeedEngine } = await import('../../dist/feed/engine/open-feed-engine.js')
  const { folderSupply } = await import('../../dist/feed/sources/folder-supply.js')
  // Memory that nobody else has: neither the arena, which is a file, nor the program, whose pages its processes share.
  const held = () => memoryOf(process.pid, 'RssAnon')
  const startMs = performance.now()
  const folder = await indexSamples(data, { cacheFolder: undefined })
  const listMs = performance.now() - startMs
  const listedBytes = held()
  const engine = openFeedEngine(folderSupply(folder), { memoryBytes: 64 * 2 ** 20, threads: 2 })
  await engine.ready()
  const stream = engine.openStream({ batchSize: 1024, world: 1, rank: 0, replicate: 1, last: 'drop' }, 2)
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
  const programBytes = memoryOf(process.pid, 'RssFile')
  process.stdout.write(JSON.stringify({ listMs, listedBytes, feedBytes, mostBytes, programBytes }))
}

/** A shard of samples with one member each. */
function writeShard(folder, { shard, shards, samples }) {
  const path = join(folder, `${String(shard).padStart(4, '0')}.tar`)
  const fd = openSync(path, 'w')
  const size = Math.floor(((shard + 1) * samples) / shards) - Math.floor((shard * samples) / shards)
  const chunk = Buffer.alloc(1024 * 1024)
  for (let at = 0; at < size; ) {
    let fill = 0
    for (; at < size && fill < chunk.length; at++, fill += 1024)
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
  block.write(
    `0000644\x000000000\x000000000\x00${SAMPLE_BYTES.toString(8).padStart(11, '0')}\x0000000000000\0        0`,
    100,
  )
  block.write('ustar\x0000', 257)
  const sum = block.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  block.write(name.repeat(8).slice(0, SAMPLE_BYTES), 512)
}
