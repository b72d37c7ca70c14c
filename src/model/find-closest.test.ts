import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findClosest } from './find-closest.js'

for (const { word, closest } of [
  { word: 'digit', closest: 'digits' },
  { word: 'Flowers', closest: 'flowers' },
  { word: 'flwoers', closest: 'flowers' },
  { word: 'idg', closest: undefined },
  { word: 'dgi', closest: undefined },
  { word: 'nothing', closest: undefined },
  { word: 'd', closest: undefined },
]) {
  test(`findClosest finds ${closest} for ${word}`, () => {
    assert.equal(findClosest(word, ['flowers', 'digits', 'nothere-db82d952']), closest)
  })
}
