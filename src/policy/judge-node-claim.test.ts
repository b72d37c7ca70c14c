import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MachineIdentity, NodeEntry } from '../model/node.js'
import { judgeNodeClaim } from './judge-node-claim.js'

const M1: MachineIdentity = { id: 'm1', host: 'gpu-1', isLasting: true }
const M2: MachineIdentity = { id: 'm2', host: 'gpu-1', isLasting: true }
const BOOT: MachineIdentity = { id: 'boot:7', host: 'pod-x', isLasting: false }
const ROOT_1 = { cacheId: 'r1', machine: M1 }

function entry(changes: Partial<NodeEntry>): NodeEntry {
  const disk = { capacityBytes: 1, freeBytes: 1, inodesTotal: 0, inodesFree: 0 }
  return { node: 'a', cacheRoot: '/cache', policy: {}, disk, seenAtMs: 0, ...changes }
}

for (const { name, nodes, cacheRoot = '/cache', outcome } of [
  { name: 'takes a name that nobody has', nodes: [], outcome: 'ours' },
  { name: 'takes a name that nobody claimed', nodes: [entry({})], outcome: 'ours' },
  { name: 'knows its own name', nodes: [entry({ identity: ROOT_1 })], outcome: 'ours' },
  {
    name: 'does not conclude from a machine without a lasting id',
    nodes: [entry({ identity: { cacheId: 'r1', machine: BOOT } })],
    outcome: 'ours',
  },
  {
    name: 'refuses a name of another root on another machine of the same host name',
    nodes: [entry({ identity: { cacheId: 'r2', machine: M2 } })],
    outcome: 'taken',
  },
  {
    name: 'refuses a name of another root on this machine',
    nodes: [entry({ identity: { cacheId: 'r2', machine: M1 } })],
    cacheRoot: '/other',
    outcome: 'taken',
  },
  {
    name: 'goes on with a folder that was emptied',
    nodes: [entry({ identity: { cacheId: 'r2', machine: M1 } })],
    outcome: 'renewed',
  },
  {
    name: 'refuses a root that is on another machine now',
    nodes: [entry({ identity: { cacheId: 'r1', machine: M2 } })],
    outcome: 'moved',
  },
  {
    name: 'notices a machine that was renamed',
    nodes: [entry({ node: 'old', identity: ROOT_1 })],
    outcome: 'renamed',
  },
  {
    name: 'notices a disk that was copied',
    nodes: [entry({ node: 'original', identity: { cacheId: 'r1', machine: M2 } })],
    outcome: 'cloned',
  },
] as const) {
  test(`judgeNodeClaim ${name}`, () => {
    assert.equal(judgeNodeClaim({ node: 'a', cacheRoot, identity: ROOT_1 }, nodes).outcome, outcome)
  })
}
