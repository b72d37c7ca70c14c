import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DscError } from '../../failure/dsc-error.js'
import { exampleDataset } from '../../testing/example-copies.js'
import { leaseOfQueued } from './queued-lease.js'
import { Stagings } from './stagings.js'

test('a node that failed is asked again after a minute', async () => {
  let nowMs = 0
  let asked = 0
  const ended: number[] = []
  const stagings = new Stagings({
    async prepare() {
      asked++
      throw new DscError('DISK_FULL', 'no room')
    },
    nowMs: () => nowMs,
    onEnd: () => ended.push(nowMs),
  })
  const lease = leaseOfQueued('queued:pod:team-a/train', 'team-a', nowMs)
  const join = async (node = 'gpu-01') => {
    const { state } = stagings.join({ node, dataset: exampleDataset('flowers'), lease, isPrefetch: false })
    await new Promise(setImmediate)
    return [state, asked]
  }
  assert.deepEqual(await join(), ['under way', 1])
  assert.deepEqual(await join(), ['failed', 1])
  nowMs = 60_000
  assert.deepEqual(await join('gpu-02'), ['under way', 2])
  assert.deepEqual(await join(), ['failed', 2])
  nowMs++
  assert.deepEqual(await join(), ['under way', 3])
  assert.deepEqual(ended, [0, 60_000, 60_001])
})

test('at most 64 stagings run at a time, not counting those that failed', async () => {
  const running = new Map<string, () => void>()
  const stagings = new Stagings({
    prepare({ node }) {
      if (node.startsWith('full')) throw new DscError('DISK_FULL', 'no room')
      return new Promise<void>((resolve) => running.set(node, resolve))
    },
    nowMs: () => 0,
    onEnd: () => {},
  })
  const join = (node: string) =>
    stagings.join({
      ...{ node, dataset: exampleDataset('flowers'), isPrefetch: false },
      lease: leaseOfQueued('queued:pod:team-a/train', 'team-a', 0),
    }).state
  for (let at = 0; at < 100; at++) join(`full-${at}`)
  await new Promise(setImmediate)
  for (let at = 0; at < 65; at++) assert.equal(join(`gpu-${at}`), 'under way')
  assert.deepEqual([running.size, running.has('gpu-64')], [64, false])
  assert.equal(join('full-0'), 'failed')
  running.get('gpu-0')!()
  await new Promise(setImmediate)
  join('gpu-64')
  assert.ok(running.has('gpu-64'))
})
