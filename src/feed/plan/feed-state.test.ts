import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FeedState, planResume } from './feed-state.js'

const IDENTITY = {
  fingerprint: 'f',
  listing: 'l',
  n: 100,
  order: 'shuffle',
  seed: 7,
  last: 'drop',
  mix: null,
} as const
const STATE: FeedState = { ...IDENTITY, v: 1, dataset: 'flowers', epoch: 2, position: 40, B: 8, skipped: [] }
const STEPS = { globalBatch: 8, stepsPerEpoch: 12 }

for (const { name, position, globalBatch = 8, at } of [
  { name: 'at its beginning', position: 0, at: { epoch: 2, step: 0 } },
  { name: 'in the middle of an epoch', position: 40, at: { epoch: 2, step: 5 } },
  { name: 'before the last step', position: 88, at: { epoch: 2, step: 11 } },
  { name: 'at the end of an epoch, which is the start of the next', position: 96, at: { epoch: 3, step: 0 } },
  { name: 'with another global batch', position: 40, globalBatch: 4, at: { epoch: 2, step: 10 } },
])
  test(`a feed resumes ${name}`, () => {
    const steps = { globalBatch, stepsPerEpoch: Math.floor(100 / globalBatch) }
    assert.deepEqual(planResume({ ...STATE, position }, IDENTITY, steps), at)
  })

for (const { name, state = {}, identity = {}, message } of [
  {
    name: 'other data',
    state: { fingerprint: 'g' },
    message: /the state has fingerprint g, this feed has f/,
  },
  {
    name: 'data of another version, where a fingerprint is missing',
    state: { fingerprint: null, listing: 'm' },
    message: /the state has listing m, this feed has l/,
  },
  { name: 'another seed', identity: { seed: 8 }, message: /seed 7, this feed has 8/ },
  { name: 'another mix', identity: { mix: { a: 1 } }, message: /mix null, this feed has {"a":1}/ },
  { name: 'a batch that does not fit', state: { position: 42 }, message: /position 42 is no multiple/ },
])
  test(`a feed does not resume with ${name}`, () =>
    assert.throws(() => planResume({ ...STATE, ...state }, { ...IDENTITY, ...identity }, STEPS), {
      code: 'FEED_STATE_MISMATCH',
      message,
    }))
