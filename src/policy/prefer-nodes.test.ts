import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatAffinity } from './prefer-nodes.js'

/** A module without types. */
const NODE_AFFINITY: string = 'kubernetes-models/v1/NodeAffinity'

for (const { count, named } of [
  { count: 0, named: undefined },
  { count: 2, named: 2 },
  { count: 40, named: 16 },
]) {
  test(`pods prefer ${named ?? 'none'} of ${count} nodes, in words that Kubernetes takes`, async () => {
    const nodes = Array.from({ length: count }, (_, index) => `gpu-${index}`)
    const affinity = JSON.parse(formatAffinity(nodes))
    const [term] = affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []
    assert.deepEqual(
      term?.preference.matchExpressions,
      named && [{ key: 'kubernetes.io/hostname', operator: 'In', values: nodes.slice(0, named) }],
    )
    const { NodeAffinity } = await import(NODE_AFFINITY)
    new NodeAffinity(affinity).validate()
  })
}
