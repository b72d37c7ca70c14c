import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Need, OrderOfNeed } from './order-of-need.js'

/** Takes needs as a staging does: first awaited ones, then ordered ones. */
const takeNext = (need: OrderOfNeed<string>) => need.takeWanted() ?? need.takeOrdered()

const takeAll = (need: OrderOfNeed<string>) => {
  const taken: Need[] = []
  for (let id = takeNext(need); id !== undefined; id = takeNext(need)) taken.push(id)
  return taken
}

test('who waits for what is not urgent hears of it, and it comes in its turn', () => {
  const need = new OrderOfNeed<string>(9, [])
  need.addOrder('feed', [5])
  need.want('node', 7, 'listed')
  need.want('node', { id: 8, offset: 0, length: 1 }, 'listed')
  need.want('node', 6, 'ordered')
  assert.deepEqual(takeAll(need), [5, 6])
  assert.deepEqual(need.arrived(7), [{ reader: 'node', need: 7 }])
})

test('an object that somebody waits for comes before what others will need later', () => {
  const need = new OrderOfNeed<string>(9, [])
  need.addOrder('feed', [5, 6, 7])
  assert.equal(need.want('gateway', 7), 'coming')
  assert.deepEqual(takeAll(need), [7, 5, 6])
})

test('readers are served in turn, and an object that two need is taken once', () => {
  const need = new OrderOfNeed<string>(9, [])
  need.addOrder('a', [1, 2, 3, 4])
  need.addOrder('b', [4, 3, 9])
  assert.deepEqual(takeAll(need), [1, 4, 2, 3, 9])
})

test('an order is gone on with when more of it comes', () => {
  const need = new OrderOfNeed<string>(9, [])
  need.addOrder('a', [3])
  assert.equal(takeNext(need), 3)
  need.addOrder('a', [1, 2])
  assert.deepEqual(takeAll(need), [1, 2])
})

test('what the listing took is not taken again, and what was taken is not handed to the listing', () => {
  const need = new OrderOfNeed<string>(9, [2])
  need.addOrder('a', [1, 2, 3])
  assert.equal(need.take(1), true)
  assert.deepEqual(takeAll(need), [3])
  assert.equal(need.take(3), false)
  assert.equal(need.take(2), false, 'it was there from the start')
})

test('those who wait hear of the arrival once', () => {
  const need = new OrderOfNeed<string>(9, [])
  need.want('a', 4)
  need.want('b', 4)
  assert.equal(takeNext(need), 4)
  assert.equal(need.want('c', 4), 'coming')
  assert.deepEqual(
    need.arrived(4).map(({ reader }) => reader),
    ['a', 'b', 'c'],
  )
  assert.deepEqual(need.arrived(4), [])
  assert.equal(need.want('d', 4), 'there')
})

test('a reader that has gone leaves nothing to fetch first', () => {
  const need = new OrderOfNeed<string>(9, [])
  need.addOrder('a', [1, 2])
  need.want('a', 8)
  need.want('b', 9)
  need.forget('a')
  assert.deepEqual(takeAll(need), [9])
  assert.equal(need.readerCount, 1)
})

test('a range that somebody waits for comes first, and its readers hear of it when its bytes are written', () => {
  const need = new OrderOfNeed<string>(9, [3])
  const range = { id: 5, offset: 100, length: 50 }
  need.addOrder('a', [{ id: 3, offset: 0, length: 1 }, { id: 4, offset: 7, length: 2 }, 6])
  assert.equal(need.want('a', range), 'coming')
  assert.equal(need.want('b', range), 'coming')
  assert.deepEqual(takeAll(need), [range, { id: 4, offset: 7, length: 2 }, 6])
  assert.deepEqual(
    need.wrote(5, () => false),
    [],
  )
  assert.deepEqual(
    need.wrote(5, ({ offset }) => offset === 100).map(({ reader }) => reader),
    ['a', 'b'],
  )
  assert.deepEqual(
    need.wrote(5, () => true),
    [],
  )
})

test('a reader orders and waits for no more than its share, which is free again when it was served or has gone', () => {
  const need = new OrderOfNeed<string>(9, [], { ordered: 4, waits: 4 })
  const range = (offset: number) => ({ id: 5, offset, length: 1 })
  need.addOrder('greedy', [1, 2, 3, 4, 6, 7])
  assert.deepEqual(takeAll(need), [1, 2, 3, 4])
  need.addOrder('greedy', [6, 7])
  need.addOrder('modest', [8, 9, 5])
  assert.deepEqual(takeAll(need), [8, 6, 9, 7])
  for (const [offset, outcome] of [
    [0, 'coming'],
    [1, 'coming'],
    [2, 'unnoted'],
  ] as const)
    assert.equal(need.want('greedy', range(offset)), outcome)
  assert.equal(need.want('modest', 6), 'coming')
  assert.equal(need.want('modest', 7), 'coming')
  assert.equal(need.want('modest', 7), 'coming', 'it waits for this already')
  assert.equal(need.want('modest', 8), 'unnoted')
  need.wrote(5, ({ offset }) => offset === 0)
  assert.equal(need.want('greedy', range(3)), 'coming')
  need.arrived(6)
  assert.equal(need.want('modest', 8), 'coming')
  need.forget('greedy')
  assert.equal(need.want('modest', 9), 'coming')
})

test('an order that goes on for ever keeps only what is to come', () => {
  const need = new OrderOfNeed<string>(9, [1], { ordered: 100, waits: 1 })
  const range = (offset: number) => ({ id: 5, offset, length: 1 })
  for (let offset = 0; offset < 1000; offset++) {
    need.addOrder('a', [1, range(offset)])
    if (offset >= 10) assert.deepEqual(need.takeOrdered(), range(offset - 10))
  }
  assert.deepEqual([...need.describe()], [{ reader: 'a', ordered: 10, waitsFor: [] }])
})

test('a reader that waits for thousands of ranges of one object does not stop the stager', () => {
  const need = new OrderOfNeed<string>(9, [])
  const startMs = performance.now()
  for (let offset = 0; offset < 65_536; offset++) need.want('a', { id: 5, offset, length: 1 })
  assert.ok(performance.now() - startMs < 5000, `${performance.now() - startMs} ms`)
  assert.equal(need.arrived(5).length, 65_536)
})

test('a reader that waits for a range is served when the whole object is verified, too', () => {
  const need = new OrderOfNeed<string>(9, [])
  const range = { id: 5, offset: 100, length: 50 }
  need.want('a', range)
  need.want('gone', { id: 5, offset: 0, length: 1 })
  need.forget('gone')
  assert.deepEqual(need.arrived(5), [{ reader: 'a', need: range }])
  assert.equal(need.want('b', range), 'there')
})
