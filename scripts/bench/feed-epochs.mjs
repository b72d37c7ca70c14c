// What the first batch of each epoch waits, in a feed whose samples come at once. Arguments: samples, epochs.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { openFeedEngine } from '../../dist/feed/engine/open-feed-engine.js'
import { tableFiles } from '../../dist/samples/sample-table.js'
import { SampleTableBuilder } from '../../dist/samples/sample-table-builder.js'

const [count = '1000000', epochs = '3'] = process.argv.slice(2)
const BATCH = 1024
const builder = new SampleTableBuilder()
for (let i = 0; i < Number(count); i++)
  builder.add({ name: `${i}`, file: 0, offset: 0, length: 60, crc32: 0 })
const table = builder.build(tableFiles({ format: 'file' }, ['all']))
const source = {
  table,
  layout: 'full',
  origin: 'peer',
  nodeCount: 1,
  nodeName: () => 'memory',
  async read({ samples }, onSample) {
    for (let i = 0; i < samples.length; i++) onSample(i, 'ok')
  },
  close: async () => {},
}
const engine = openFeedEngine(
  { table, folder: undefined, makeSource: () => source },
  { seed: 1, memoryBytes: 96 * Number(count) + 2 ** 24 },
)
const stream = engine.openStream({ batchSize: BATCH, world: 1, rank: 0, replicate: 1, last: 'drop' }, 2)
await engine.ready()
const startedAt = performance.now()
await stream.start(0, 0)
process.stdout.write(`${count} samples; start: ${(performance.now() - startedAt).toFixed(1)} ms\n`)
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
for (let epoch = 0; epoch < Number(epochs); epoch++) {
  let first
  delay.reset()
  const epochAt = performance.now()
  for (let step = 0; step < stream.sequence.batchesPerEpoch; step++) {
    const askedAt = performance.now()
    const batch = await stream.read(epoch, step)
    first ??= performance.now() - askedAt
    stream.release(batch)
    if (step % 8 === 0) await new Promise(setImmediate)
  }
  const seconds = (performance.now() - epochAt) / 1e3
  process.stdout.write(
    `epoch ${epoch}: first batch ${first.toFixed(1)} ms; the whole ${seconds.toFixed(1)} s; longest turn ${(delay.max / 1e6).toFixed(0)} ms\n`,
  )
}
await engine.close()
