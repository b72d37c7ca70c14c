import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawPod } from '../../testing/waiting-cluster.js'
import { parsePod } from '../controller/cluster-objects.js'
import { PodEvents } from './pod-events.js'

const MEANS = { component: 'dsc.io/staged', onFailure: (error: unknown) => assert.fail(String(error)) }

test('a pod that is refused by one node after the other gets each message once', async () => {
  const told: unknown[] = []
  const api = {
    async send(_method: string, _path: string, event: unknown) {
      told.push((event as { readonly message: string }).message)
    },
  }
  const events = new PodEvents({ ...MEANS, api })
  const pod = parsePod(rawPod('train', ['flowers']))!
  for (let round = 0; round < 3; round++) {
    events.tell(pod, { reason: 'Staging', message: `staging on gpu-0${round}` })
    events.tell(pod, { reason: 'StagingRefused', message: 'no node has room', isWarning: true })
  }
  assert.deepEqual(told, ['staging on gpu-00', 'no node has room'])
  events.keepOnly(new Map())
  events.tell(pod, { reason: 'StagingRefused', message: 'no node has room', isWarning: true })
  assert.equal(told.length, 3, 'a pod that is gone is forgotten')
})

for (const { pods, everyS } of [
  { pods: 1, everyS: 60 },
  { pods: 600, everyS: 60 },
  { pods: 1200, everyS: 120 },
]) {
  test(`${pods} pods tell their progress every ${everyS} s, a new state at once`, async (context) => {
    const clock = { ms: 0 }
    context.mock.method(performance, 'now', () => clock.ms)
    let told = 0
    const events = new PodEvents({ ...MEANS, api: { send: async () => void told++ } })
    const all = Array.from({ length: pods }, (_, at) => parsePod(rawPod(`train-${at}`, ['flowers']))!)
    const tellAll = async (reason: string) => {
      const message = `${reason} at ${clock.ms}`
      told = 0
      for (const pod of all) events.tell(pod, { reason, message })
      await new Promise(setImmediate)
      return told
    }
    assert.equal(await tellAll('Staging'), pods)
    clock.ms = everyS * 1000 - 1
    assert.equal(await tellAll('Staging'), 0)
    assert.equal(await tellAll('Staged'), pods)
    clock.ms++
    assert.equal(await tellAll('Staging'), pods)
  })
}

test('four events are under way at most; one that fails is reported, and the others are sent', async () => {
  const failures: unknown[] = []
  const under: PromiseWithResolvers<void>[] = []
  const send = () => {
    const one = Promise.withResolvers<void>()
    under.push(one)
    return one.promise
  }
  const onFailure = (error: unknown) => failures.push(error)
  const events = new PodEvents({ ...MEANS, api: { send }, onFailure })
  for (let at = 0; at < 6; at++)
    events.tell(parsePod(rawPod(`train-${at}`, ['flowers']))!, { reason: 'Staged', message: 'ready' })
  assert.equal(under.length, 4)
  const away = new Error('away')
  under[0]!.reject(away)
  under[1]!.resolve()
  await new Promise(setImmediate)
  assert.deepEqual([under.length, failures], [6, [away]])
  for (const { resolve } of under) resolve()
  await new Promise(setImmediate)
  events.tell(parsePod(rawPod('late', ['flowers']))!, { reason: 'Staged', message: 'ready' })
  assert.equal(under.length, 7)
})
