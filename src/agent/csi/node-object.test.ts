import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyUse } from '../../model/copy.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { NodeObject } from './node-object.js'

const OTHER = { key: 'other', effect: 'NoSchedule' }
const NOT_READY = { key: 'dsc.io/agent-not-ready', effect: 'NoExecute' }

/** A node in an API server that only exists in memory. */
function makeNode(taints?: readonly object[]) {
  const patches: unknown[] = []
  const told: string[] = []
  const stopping = new AbortController()
  const state = { copies: [] as CopyUse[], failure: undefined as string | undefined, reads: 0, looks: 0 }
  const labels = { 'kubernetes.io/hostname': 'gpu-01', 'dsc.io/old': 'ready' }
  const answer = async <T>(what: T) => {
    if (state.failure !== undefined) throw new Error(state.failure)
    return what
  }
  const node = new NodeObject({
    api: {
      get(path) {
        state.reads++
        return answer({ path, metadata: { labels }, spec: taints ? { taints } : {} })
      },
      async patch(path, kind, patch) {
        await answer(undefined)
        patches.push([path, kind, patch])
      },
    },
    ...{ driver: 'dsc.io', node: 'gpu-01', shown: new Set(['flowers']), stopping: stopping.signal },
    listCopies: async () => {
      state.looks++
      return state.copies
    },
    note: (sentence) => told.push(sentence),
  })
  return { node, patches, told, state, stopping }
}
const PATH = '/api/v1/nodes/gpu-01'

test('labels follow the copies of the node, with one patch for each change and one look at the node', async () => {
  const { node, patches, state } = makeNode()
  state.copies = [exampleCopy('flowers')]
  await node.keep()
  await node.keep()
  state.copies = []
  await node.keep()
  assert.deepEqual(patches, [
    [PATH, 'merge-patch', { metadata: { labels: { 'dsc.io/old': null, 'dsc.io/flowers': 'ready' } } }],
    [PATH, 'merge-patch', { metadata: { labels: { 'dsc.io/flowers': null } } }],
  ])
  assert.equal(state.reads, 1)
})

test('changes of copies within a second share a patch, also while the node is brought up to date', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const { node, patches, state } = makeNode()
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  await node.keep()
  state.copies = [exampleCopy('flowers')]
  node.keepSoon()
  node.keepSoon()
  context.mock.timers.tick(999)
  await settled()
  assert.equal(patches.length, 1)
  context.mock.timers.tick(1)
  await settled()
  assert.deepEqual(patches.slice(1), [
    [PATH, 'merge-patch', { metadata: { labels: { 'dsc.io/flowers': 'ready' } } }],
  ])
  assert.equal(state.looks, 2)
  void node.keep() // has looked before the next change
  state.copies = []
  node.keepSoon()
  context.mock.timers.tick(1000)
  await settled()
  assert.equal(patches.length, 3)
})

test('the taint goes once kubelet knows the driver, and only that taint', async () => {
  const taints = [OTHER, NOT_READY]
  const { node, patches } = makeNode(taints)
  await node.keep()
  assert.equal(patches.length, 1, 'labels alone')
  await node.registered()
  assert.deepEqual(patches[1], [
    PATH,
    'json-patch',
    [
      { op: 'test', path: '/spec/taints', value: taints },
      { op: 'replace', path: '/spec/taints', value: [OTHER] },
    ],
  ])
})

test('what the API server refuses is told once, and tried again', async () => {
  const { node, patches, told, state, stopping } = makeNode([NOT_READY])
  state.failure = 'the API server answers 403: no'
  await node.registered()
  await node.keep()
  assert.deepEqual(told, [
    'the labels of node gpu-01 in Kubernetes stay as they are: the API server answers 403: no',
  ])
  state.failure = undefined
  await node.keep()
  assert.equal(patches.length, 2, 'the taint and the labels')
  state.failure = 'aborted'
  state.copies = [exampleCopy('flowers')]
  stopping.abort()
  await node.keep()
  assert.equal(told.length, 1, 'an agent that stops says nothing')
})

test('an agent that stops takes its labels along, and sets none any more', async () => {
  const { node, patches, state } = makeNode([NOT_READY])
  state.copies = [exampleCopy('flowers')]
  await node.keep()
  await node.leave()
  await node.keep()
  assert.deepEqual(patches.slice(1), [
    [PATH, 'merge-patch', { metadata: { labels: { 'dsc.io/flowers': null } } }],
  ])
  const { node: unread, patches: first } = makeNode()
  await unread.leave()
  assert.deepEqual(first, [[PATH, 'merge-patch', { metadata: { labels: { 'dsc.io/old': null } } }]])
})
