import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FEED_TRIAL_ANSWERS } from '../cli/answers/feed-answers.js'
import { succeeds } from '../testing/dsc-processes.js'
import { writeSamples } from '../testing/sample-folder.js'
import { makeWorld } from '../testing/world.js'

const PACKAGE = fileURLToPath(new URL('../exports/index.js', import.meta.url))
/** Trains two ranks for so many epochs, and says what each batch was. */
const TRAINER = `
import { openFeed } from ${JSON.stringify(PACKAGE)}
import { setTimeout as sleep } from 'node:timers/promises'
const socket = process.env.DSC_FEED_SOCKET
const epochs = Number(process.argv[2])
const train = async (rank) => {
  await using feed = await openFeed({ socket, batchSize: 4, seed: 7, rank, world: 2 })
  for (let epoch = 0; epoch < epochs; epoch++)
    for await (const batch of feed) {
      for (const { data, id } of batch) if (data.length !== 500) throw new Error('sample ' + id)
      await sleep(3)
    }
}
await Promise.all([train(0), train(1)])
console.log('trained')
`

test('a trial tells each rank’s pace with data as it comes and with data for nothing, and ends the trainer', async (context) => {
  const world = await makeWorld(context, {})
  writeSamples(join(world.directory, 'samples'), 400, () => 500)
  const trainer = join(world.directory, 'train.mjs')
  await writeFile(trainer, TRAINER)
  const runtime = { environment: { XDG_RUNTIME_DIR: world.directory } }
  const measure = (epochs: number, ...options: readonly string[]) =>
    world.start(
      ['feed', 'headspace', 'samples', '--seed', '7', '--batches', '20', '--warmup', '10', ...options].concat(
        '--',
        process.execPath,
        trainer,
        String(epochs),
      ),
      runtime,
    ).finished
  const endless = await succeeds(measure(100_000, '--json'))
  const result = FEED_TRIAL_ANSWERS['feed headspace'].parse(JSON.parse(endless.stdout))
  assert.deepEqual(
    result.workers.map(({ rank, asItIs, free }) => [rank, asItIs.batches, free.batches]).sort(),
    [
      [0, 20, 20],
      [1, 20, 20],
    ],
  )
  // Timers of 3 ms may end a little early.
  for (const { asItIs, free } of result.workers)
    assert.ok(asItIs.secondsPerBatch > 0.002 && free.secondsPerBatch > 0.002, JSON.stringify(result))
  assert.doesNotMatch(endless.stderr, /trained/)

  const short = await measure(1)
  assert.equal(short.code, 2)
  assert.match(short.stderr, /trained/) // what the trainer prints on stdout
  assert.match(short.stderr, /the trainer ended after \d+ batches of its slowest worker/)
  const idle = await world.start(['feed', 'headspace', 'samples', '--', process.execPath, '-e', '0'], runtime)
    .finished
  assert.match(idle.stderr, /the trainer ended and took no batch from this feed/)
  const nothing = await world.dsc('feed', 'headspace', 'samples')
  assert.match(nothing.stderr, /no trainer: expected -- and the command that trains/)
})
