import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawGraph } from './braille-graph.js'

for (const { name, values, rows = 1, drawn } of [
  { name: 'each value has a dot, the most all of them', values: [0, 2, 3, 4], drawn: ['⣠⣾'] },
  { name: 'a trace of a value is more than none', values: [0, 0.001, 0, 0], drawn: ['⣠⣀'] },
  { name: 'the latest values are at the right', values: [4, 4], drawn: ['⠀⣿'] },
  { name: 'rows stand on each other', values: [0, 4, 2, 2], rows: 2, drawn: ['⢸⠀', '⣸⣿'] },
  { name: 'a peak survives being thinned out', values: [0, 0, 4, 0, 0, 0, 0, 0], drawn: ['⣸⣀'] },
  { name: 'more than the most is the most', values: [0, 0, 0, 9], drawn: ['⣀⣸'] },
]) {
  test(`of a graph ${name}`, () => assert.deepEqual(drawGraph(values, { rows, width: 2, most: 4 }), drawn))
}
