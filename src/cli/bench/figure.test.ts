import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Figure, findSlowest, judgeFigures, NEEDS } from './figure.js'

const fastDisk: Figure = { part: 'disk', what: 'writes', value: 2 * NEEDS.writes.needed }
const slowRecord: Figure = { part: 'record', what: 'answers', value: 4 * NEEDS.answers.needed }
const slowStore: Figure = { part: 'store', what: 'sends', value: NEEDS.sends.needed / 2 }

for (const { name, figures, slowest } of [
  { name: 'nothing is slow where all is enough', figures: [fastDisk], slowest: undefined },
  { name: 'nothing is slow where nothing was measured', figures: [], slowest: undefined },
  { name: 'a rate below what is needed is slow', figures: [fastDisk, slowStore], slowest: 'sends' },
  { name: 'a time above what is needed is slow', figures: [fastDisk, slowRecord], slowest: 'answers' },
  { name: 'the slowest is furthest from its need', figures: [slowStore, slowRecord], slowest: 'answers' },
]) {
  test(`findSlowest: ${name}`, () => {
    assert.equal(findSlowest(judgeFigures(figures))?.what, slowest)
  })
}

test('judgeFigures calls exactly what is needed enough', () => {
  for (const what of ['reads', 'answers'] as const) {
    const [judged] = judgeFigures([{ part: 'disk', what, value: NEEDS[what].needed }])
    assert.equal(judged?.isEnough, true)
  }
})
