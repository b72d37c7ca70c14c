import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ArenaExtents } from '../arena/arena-extents.js'
import { shuffleSamples } from '../plan/order.js'
import { planRankSequence } from '../plan/rank-sequence.js'
import { openReaderPool, type ReaderPool } from '../threads/reader-pool.js'
import { Epochs } from './epochs.js'
import { OrderBook } from './order-book.js'
import { RankItems } from './rank-items.js'

const COUNT = 1000
const KEPT = 250
const SEED = 7
const orderOf = (epoch: number) => [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })]

/** Records jobs for reader threads, which answer only while `isAnswering`. */
class WatchedPool implements ReaderPool {
  readonly jobs: string[] = []
  isAnswering = true
  readonly #pool = openReaderPool({ arenaFd: -1 }, 1)
  readonly #running = new Set<Promise<unknown>>()

  run(job: Parameters<ReaderPool['run']>[0]) {
    assert.ok(job.kind === 'shuffle' || job.kind === 'prefix')
    this.jobs.push(`${job.kind} ${job.kind === 'shuffle' ? job.epoch : job.visits.epoch}`)
    const answer = this.#pool.run(job)
    answer.catch(() => {}) // the pool is closed
    this.#running.add(answer)
    return this.isAnswering ? answer : new Promise<never>(() => {})
  }

  /** Resolves when all jobs, and the jobs they led to, have been answered. */
  async rest(): Promise<void> {
    for (let known = -1; known !== this.#running.size; await nextTurn()) {
      known = this.#running.size
      await Promise.all(this.#running)
    }
  }

  close = () => this.#pool.close()
}

function open(context: TestContext, { isCarrying = true, carryBytes = 64 * KEPT, firstEpoch = 0 } = {}) {
  const pool = new WatchedPool()
  context.after(() => pool.close())
  const arena = {
    carryBytes,
    finished: 0,
    space: { extents: new ArenaExtents({ totalBytes: 2 ** 40 }), finish: () => void arena.finished++ },
  }
  const lengths = new Uint32Array(new SharedArrayBuffer(4 * COUNT)).fill(60)
  const orders = new OrderBook({ positionCount: COUNT, seed: SEED, kind: 'shuffle', mix: undefined, pool })
  const epochs = new Epochs({ orders, arena, pool, lengths, isCarrying, firstEpoch })
  const shape = { sampleCount: COUNT, batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const items = new RankItems({
    sequence: planRankSequence(shape),
    rule: 'fixed',
    placed: { layout: 'full', nodeCount: 1 },
    orders,
    isEachOnce: true,
  })
  epochs.join(items)
  return { pool, epochs, items, arena }
}

/** Returns the samples kept for `epoch`, in its order. */
const keptFor = (epochs: Epochs, epoch: number) =>
  orderOf(epoch).filter((sample) => epochs.carry.isWanted(epoch, sample))

test('a run that goes on in a later epoch waits for no order, neither its own nor those of epochs that it never reads', async (context) => {
  const { pool, epochs, items } = open(context, { firstEpoch: 5 })
  await epochs.ready()
  assert.equal(epochs.enter(items, 5), undefined)
  await pool.rest()
  assert.deepEqual(pool.jobs.toSorted(), ['prefix 6', 'prefix 7', 'shuffle 5', 'shuffle 6', 'shuffle 7'])
})

for (const isCarrying of [true, false])
  test(`what an epoch needs is made while the one before it runs, ${isCarrying ? 'with' : 'without'} keeping samples`, async (context) => {
    const { pool, epochs, items } = open(context, { isCarrying })
    await epochs.enter(items, 0)
    await pool.rest()
    for (let epoch = 1; epoch < 4; epoch++) {
      pool.jobs.length = 0
      assert.equal(epochs.enter(items, epoch), undefined, 'there is nothing to wait for')
      assert.ok(items.find(epoch * COUNT), 'its first sample is known')
      assert.deepEqual(keptFor(epochs, epoch + 1), isCarrying ? orderOf(epoch + 1).slice(0, KEPT) : [])
      assert.deepEqual(pool.jobs, [], 'the first batch leaves before threads work for the next epoch')
      await pool.rest()
      const ahead = isCarrying ? [`shuffle ${epoch + 2}`, `prefix ${epoch + 2}`] : [`shuffle ${epoch + 1}`]
      assert.deepEqual(pool.jobs, ahead, 'other threads make what the next epoch needs, once')
    }
  })

test('the first order is made before anybody reads', async (context) => {
  const { pool } = open(context)
  assert.deepEqual(pool.jobs, ['shuffle 0'])
})

test('the first batch of a run waits for its order only, and that is there once the feed is open', async (context) => {
  const { pool, epochs, items } = open(context)
  await epochs.ready()
  pool.isAnswering = false
  assert.equal(epochs.enter(items, 0), undefined, 'nothing to wait for')
  assert.ok(items.find(0))
  assert.ok(epochs.carry.isAwaited(1), 'what is kept for the next epoch is being found out')
  assert.equal(epochs.carry.isWanted(1, orderOf(1)[0]!), false)
})

test('threads read the first samples before they find out what is kept for the next epoch', async (context) => {
  const { pool, epochs, items } = open(context)
  await epochs.ready()
  pool.jobs.length = 0
  assert.equal(epochs.enter(items, 0), undefined)
  await Promise.resolve()
  assert.equal(pool.jobs.join(), '', 'the reads of this turn come first')
  await pool.rest()
  assert.ok(pool.jobs.includes('prefix 1'))
})

test('an epoch knows what it keeps later than its order, for every caller', async (context) => {
  const { pool, epochs, items } = open(context)
  await epochs.ready()
  void epochs.enter(items, 0)
  await epochs.whenKeptIsKnown(0)
  assert.deepEqual(keptFor(epochs, 1), orderOf(1).slice(0, KEPT))
  assert.equal(epochs.whenKeptIsKnown(0), undefined)
  assert.equal(epochs.carry.isAwaited(1), false)
  await pool.rest()
  assert.equal(open(context, { isCarrying: false }).epochs.whenKeptIsKnown(0), undefined)
})

test('less room to keep samples counts at once, more room from the next epoch on', async (context) => {
  const { pool, epochs, items, arena } = open(context)
  await epochs.enter(items, 0)
  await pool.rest()
  const sizes = () => [1, 2].map((epoch) => keptFor(epochs, epoch).length)
  assert.deepEqual(sizes(), [KEPT, KEPT])
  arena.carryBytes = 64 * 100
  epochs.replanPrefixes()
  assert.deepEqual(sizes(), [KEPT, KEPT], 'the old ones count until the new ones are there')
  await pool.rest()
  assert.deepEqual(sizes(), [100, 100])
  arena.carryBytes = 64 * 400
  epochs.replanPrefixes({ isLater: true })
  await pool.rest()
  assert.deepEqual(sizes(), [100, 400])
})

test('the first batch of an epoch does not wait until all that nobody used of the one before is given back', async (context) => {
  const { pool, epochs, items, arena } = open(context)
  for (const epoch of [0, 1]) await epochs.enter(items, epoch)
  const { extents } = arena.space
  for (let sample = 0; sample < 200_000; sample++)
    epochs.carry.insert(1, extents.add({ length: 64, sample }, { start: 0, isAtTop: true }))
  await epochs.enter(items, 2)
  assert.ok(arena.finished > 0 && arena.finished < 70_000, `${arena.finished} at once`)
  assert.equal(epochs.carry.heldBytes(), 64 * (200_000 - arena.finished), 'the rest still takes room')
  for (let batch = 0; batch < 10; batch++) await epochs.enter(items, 2)
  assert.equal(arena.finished, 200_000)
  await pool.rest()
})

test('who finds no room has all of it given back', async (context) => {
  const { pool, epochs, items, arena } = open(context)
  for (const epoch of [0, 1]) await epochs.enter(items, epoch)
  const { extents } = arena.space
  for (let sample = 0; sample < 200_000; sample++)
    epochs.carry.insert(1, extents.add({ length: 64, sample }, { start: 0, isAtTop: true }))
  await epochs.enter(items, 2)
  assert.equal(epochs.freeAllUnused(), true)
  assert.equal(arena.finished, 200_000)
  assert.equal(epochs.freeAllUnused(), false)
  await pool.rest()
})
