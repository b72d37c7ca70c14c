/** The scheduler compares every node with every one of them. */
const MAX_HOSTNAMES = 16

/**
 * The `nodeAffinity` of a pod that prefers the first 16 of these nodes, as JSON in one line: YAML takes it anywhere. `{}`
 * prefers none.
 */
export function formatAffinity(nodes: readonly string[]): string {
  if (nodes.length === 0) return '{}'
  const hostname = { key: 'kubernetes.io/hostname', operator: 'In', values: nodes.slice(0, MAX_HOSTNAMES) }
  return JSON.stringify({
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 100, preference: { matchExpressions: [hostname] } },
    ],
  })
}
