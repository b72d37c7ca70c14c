import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseQuantity } from '../../model/quantity.js'
import { rawNode } from '../../testing/waiting-cluster.js'
import { parseNode } from './cluster-objects.js'
import { podSpec, sumRequests } from './pod-needs.js'
import { suitsNode } from './suits-node.js'

const required = (...terms: object[]) => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  },
})
const expression = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, values }],
})
const TAINT = { key: 'gpu', value: 'yes', effect: 'NoSchedule' }
const gpus = (count: number) => ({ containers: [{ resources: { limits: { 'nvidia.com/gpu': count } } }] })

for (const { name, spec, node = {}, expected } of [
  { name: 'without a wish', spec: {}, expected: true },
  { name: 'for another label', spec: { nodeSelector: { pool: 'cpu' } }, expected: false },
  { name: 'for its label', spec: { nodeSelector: { pool: 'gpu' } }, expected: true },
  { name: 'larger than it', spec: gpus(9), expected: false },
  { name: 'as large as it', spec: gpus(8), expected: true },
  {
    name: 'for one of two terms',
    spec: required(expression('x', 'Exists'), expression('pool', 'In', 'gpu')),
    expected: true,
  },
  { name: 'for no term', spec: required({}), expected: false },
  { name: 'not on its label', spec: required(expression('pool', 'NotIn', 'gpu')), expected: false },
  { name: 'not with a label that it lacks', spec: required(expression('x', 'DoesNotExist')), expected: true },
  {
    name: 'for its name',
    spec: required({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['gpu-01'] }] }),
    expected: true,
  },
  {
    name: 'that does not tolerate its taint',
    spec: {},
    node: { spec: { taints: [TAINT] } },
    expected: false,
  },
  {
    name: 'that tolerates its taint',
    spec: { tolerations: [{ key: 'gpu', value: 'yes' }] },
    node: { spec: { taints: [TAINT] } },
    expected: true,
  },
  {
    name: 'that tolerates another value',
    spec: { tolerations: [{ key: 'gpu', value: 'no' }] },
    node: { spec: { taints: [TAINT] } },
    expected: false,
  },
  { name: 'when it is cordoned', spec: {}, node: { spec: { unschedulable: true } }, expected: false },
]) {
  test(`a node ${expected ? 'suits' : 'does not suit'} a pod ${name}`, () => {
    const parsed = podSpec.parse(spec)
    assert.equal(suitsNode(parsed, sumRequests(parsed), parseNode(rawNode('gpu-01', 8, node))), expected)
  })
}

test('requests are counted as the scheduler does', () => {
  const container = (cpu: string, limits = {}) => ({ resources: { requests: { cpu }, limits } })
  const spec = podSpec.parse({
    containers: [container('500m', { cpu: '2', memory: '1Gi' }), container('1')],
    initContainers: [container('3')],
    overhead: { cpu: '250m' },
  })
  assert.deepEqual(sumRequests(spec), { pods: 1, cpu: 3.25, memory: 2 ** 30 })
  assert.deepEqual(['1e3', '1.5Ki', '2M', 'x'].map(parseQuantity), [1000, 1536, 2e6, 0])
})
