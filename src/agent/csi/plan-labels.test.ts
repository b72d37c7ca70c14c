import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCopy } from '../../testing/example-copies.js'
import { MAX_LABELS, planLabels } from './plan-labels.js'

const stripe = { index: 0, nodes: ['a', 'b'] }
const flowers = exampleCopy('flowers')
const names = Array.from({ length: MAX_LABELS + 2 }, (_, index) => `d${String(index).padStart(2, '0')}`)
const many = names.map((name, index) => exampleCopy(name, { lastUsedAtMs: index }))
const [oldest, , third] = names

for (const { name, labels = {}, copies, changes } of [
  { name: 'names a dataset that is ready', copies: [flowers], changes: { 'dsc.io/flowers': 'ready' } },
  {
    name: 'changes nothing that is right',
    labels: { 'dsc.io/flowers': 'ready' },
    copies: [flowers],
    changes: {},
  },
  {
    name: 'names a dataset with two versions once',
    copies: [flowers, flowers],
    changes: { 'dsc.io/flowers': 'ready' },
  },
  {
    name: 'removes the label of a copy that is gone',
    labels: { 'dsc.io/flowers': 'ready' },
    copies: [],
    changes: { 'dsc.io/flowers': null },
  },
  {
    name: 'leaves out what is not whole',
    copies: [exampleCopy('flowers', { state: 'staging' }), exampleCopy('flowers', { stripe })],
    changes: {},
  },
  { name: 'leaves out what not everybody may know', copies: [exampleCopy('private')], changes: {} },
  { name: 'leaves out what Kubernetes takes for no label', copies: [exampleCopy('-odd-')], changes: {} },
  {
    name: 'touches no label of others',
    labels: { 'dsc.io/birds': 'mine', 'kubernetes.io/hostname': 'ready', 'dsc.io/flowers': 'mine' },
    copies: [flowers],
    changes: {},
  },
  {
    name: 'has a limit, and prefers what has its label and what was used last',
    labels: { [`dsc.io/${oldest}`]: 'ready' },
    copies: many,
    changes: Object.fromEntries(names.slice(3).map((each) => [`dsc.io/${each}`, 'ready'])),
  },
]) {
  test(`planLabels ${name}`, () => {
    const shown = new Set(['flowers', 'birds', '-odd-', ...names])
    assert.deepEqual(planLabels({ driver: 'dsc.io', labels, copies, shown }), changes)
  })
}

test('the limit of labels leaves the third dataset out, as one that was used before the others', () => {
  const changes = planLabels({ driver: 'dsc.io', labels: {}, copies: many, shown: new Set(names) })
  assert.equal(Object.keys(changes).length, MAX_LABELS)
  assert.deepEqual([`dsc.io/${oldest}` in changes, `dsc.io/${third}` in changes], [false, true])
})
