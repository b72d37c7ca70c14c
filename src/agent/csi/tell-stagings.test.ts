import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ToldStaging, tellStagings } from './tell-stagings.js'

test('a pod is told of its datasets that have been on their way for some seconds, in one event', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] })
  const clock = { ms: 0 }
  context.mock.method(performance, 'now', () => clock.ms)
  const pass = (ms: number) => {
    clock.ms += ms
    context.mock.timers.tick(ms)
  }
  const pod = { uid: 'u-1', namespace: 'team-a', name: 'reader' }
  let stagings: readonly ToldStaging[] = ['flowers: 1 MiB of 4 MiB', 'birds: listing'].map((progress) => ({
    ...{ pod, progress, beganMs: 0 },
  }))
  stagings = [...stagings, { pod: { ...pod, uid: 'u-2' }, beganMs: 1000, progress: 'bees: listing' }]
  const told: string[] = []
  const kept: number[] = []
  const end = tellStagings(() => stagings, {
    tell: ({ uid }, { reason, message }) => void told.push(`${uid} ${reason} ${message}`),
    keepOnly: ({ size }) => void kept.push(size),
  })
  pass(4999)
  assert.deepEqual(told, [])
  pass(1)
  assert.deepEqual(told, ['u-1 Staging flowers: 1 MiB of 4 MiB; birds: listing'])
  stagings = [{ pod, beganMs: 0, progress: 'x: from https://data.example/x?token=secret' }]
  pass(5000)
  assert.doesNotMatch(told[1]!, /secret/)
  assert.deepEqual(kept, [2, 1], 'pods that wait no longer are forgotten')
  end()
  pass(5000)
  assert.equal(told.length, 2)
})
