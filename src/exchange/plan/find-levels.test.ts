import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLevels } from './find-levels.js'

const place = (...hosts: readonly (string | undefined)[]) => hosts.map((hostKey, rank) => ({ rank, hostKey }))

for (const { name, ranks, rank, network, host } of [
  { name: 'one level', ranks: place(undefined, undefined), rank: 1, network: [0, 1], host: [1] },
  { name: 'the first of a host', ranks: place('a', 'a', 'b', 'b'), rank: 2, network: [0, 2], host: [2, 3] },
  { name: 'another of a host', ranks: place('a', 'a', 'b', 'b'), rank: 1, network: [0, 2], host: [0, 1] },
  { name: 'ranks in turn', ranks: place('a', 'b', 'a', 'b'), rank: 3, network: [0, 1], host: [1, 3] },
  { name: 'hosts that are unlike', ranks: place('a', 'b', 'b'), rank: 0, network: [0, 1], host: [0] },
  { name: 'one host', ranks: place('a', 'a', 'a'), rank: 2, network: [0], host: [0, 1, 2] },
]) {
  test(`findLevels: ${name}`, () => assert.deepEqual(findLevels(ranks, rank), { network, host }))
}
