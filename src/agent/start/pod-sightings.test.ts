import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PodSightings } from './pod-sightings.js'

const POD = { kind: 'pod', uid: 'u' } as const
const VOLUME = { holder: POD, expiresAtMs: null }
const PREPARED = { holder: POD, expiresAtMs: 1_000_000 }
const SEEN = new Set(['u'])
const OTHERS = new Set(['v'])

for (const { name, lease, running, mounted, expected } of [
  { name: 'with a process', lease: PREPARED, running: SEEN, mounted: undefined, expected: 'alive' },
  { name: 'with a volume', lease: VOLUME, running: OTHERS, mounted: SEEN, expected: 'alive' },
  { name: 'without either', lease: VOLUME, running: OTHERS, mounted: OTHERS, expected: 'gone' },
  {
    name: 'without a volume, of which nothing else can be seen',
    lease: VOLUME,
    running: undefined,
    mounted: OTHERS,
    expected: 'gone',
  },
  {
    name: 'that prepared itself, where only volumes can be seen',
    lease: PREPARED,
    running: undefined,
    mounted: OTHERS,
    expected: 'unknown',
  },
  {
    name: 'of which nothing can be seen',
    lease: VOLUME,
    running: undefined,
    mounted: undefined,
    expected: 'unknown',
  },
  {
    name: 'of a lease without one',
    lease: { holder: { kind: 'ttl' }, expiresAtMs: 1 },
    running: OTHERS,
    mounted: OTHERS,
    expected: 'unknown',
  },
] as const)
  test(`a pod ${name} is ${expected}`, () => {
    const pods = new PodSightings({ listRunning: () => running, listMounted: () => mounted })
    pods.look(0)
    assert.equal(pods.judge(lease, 0), expected === 'gone' ? 'unknown' : expected)
    pods.look(45_000)
    assert.equal(pods.judge(lease, 45_000), expected)
  })

test('a pod is gone 45 s after it was last seen, or after it was first looked for', () => {
  let running: ReadonlySet<string> = OTHERS
  const pods = new PodSightings({ listRunning: () => running, listMounted: () => undefined })
  pods.look(0)
  assert.equal(pods.judge(PREPARED, 0), 'unknown')
  assert.equal(pods.judge(PREPARED, 44_999), 'unknown')
  running = SEEN
  pods.look(50_000)
  assert.equal(pods.judge(PREPARED, 50_000), 'alive')
  running = OTHERS
  pods.look(80_000)
  assert.equal(pods.judge(PREPARED, 80_000), 'unknown')
  pods.look(110_000)
  assert.equal(pods.judge(PREPARED, 110_000), 'gone')
})

test('a pod that begins long after the agent is not gone before it could be seen', () => {
  const pods = new PodSightings({ listRunning: () => OTHERS, listMounted: () => undefined })
  pods.look(0)
  pods.look(1_000_000)
  assert.equal(pods.judge(PREPARED, 1_000_000), 'unknown')
  pods.look(1_045_000)
  assert.equal(pods.judge(PREPARED, 1_045_000), 'gone')
})
