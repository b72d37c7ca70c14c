import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KnownStaging, mayHave } from './may-have.js'

const own: KnownStaging = {
  node: 'own',
  createdAtMs: 1000,
  stager: { task: 'train', createdAtMs: 1000 },
  isStaging: true,
}
const earlier = { ...own, node: 'other', createdAtMs: 900, stager: { task: 'train', createdAtMs: 900 } }
const TOLD = new Set(['own', 'other'])

for (const { name, other, of = own, invited = TOLD, may } of [
  { name: 'began earlier by itself', other: earlier, invited: new Set<string>(), may: true },
  { name: 'began later', other: { ...earlier, createdAtMs: 1001 }, invited: new Set<string>(), may: false },
  { name: 'was told at once with this one', other: earlier, may: false },
  { name: 'was told at once with this one and gave up', other: { ...earlier, isStaging: false }, may: true },
  {
    name: 'was staging for another task when this one was told',
    other: { ...earlier, stager: { task: 'other', createdAtMs: 900 } },
    may: true,
  },
  {
    name: 'goes on with an earlier attempt',
    other: { ...earlier, stager: { task: 'train', createdAtMs: 950 } },
    may: true,
  },
  {
    name: 'was there while this one began again',
    other: earlier,
    of: { ...own, stager: { task: 'train', createdAtMs: 1500 } },
    may: true,
  },
])
  test(`a node that ${name} ${may ? 'may have' : 'has nothing of'} what this one is to read`, () => {
    assert.equal(mayHave(other, of, invited), may)
  })
