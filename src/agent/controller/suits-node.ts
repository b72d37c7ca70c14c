import type { NodeObject } from './cluster-objects.js'
import type { NodeSelectorTerm, PodSpec, Quantities } from './pod-needs.js'

/** Whether kube-scheduler may place a pod on the node, were the node empty: by labels, taints and size. */
export function suitsNode(spec: PodSpec, requests: Quantities, node: NodeObject): boolean {
  return isAllowed(spec, node) && countFits(requests, node.allocatable) > 0 && matchesLabels(spec, node)
}

/** How many pods with these requests fit into the resources. */
export function countFits(requests: Quantities, resources: Quantities): number {
  const counts = Object.entries(requests)
    .filter(([, value]) => value > 0)
    .map(([name, value]) => Math.floor((resources[name] ?? 0) / value))
  return Math.max(0, Math.min(...counts, Number.MAX_SAFE_INTEGER))
}

function isAllowed({ tolerations }: PodSpec, { taints, isUnschedulable }: NodeObject): boolean {
  if (isUnschedulable) return false
  return taints
    .filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
    .every((taint) =>
      tolerations.some(
        ({ key, operator, value, effect }) =>
          (effect === undefined || effect === taint.effect) &&
          (key === undefined ? operator === 'Exists' : key === taint.key) &&
          (operator === 'Exists' || value === taint.value),
      ),
    )
}

function matchesLabels({ nodeSelector, affinity }: PodSpec, node: NodeObject): boolean {
  if (Object.entries(nodeSelector).some(([key, value]) => node.labels[key] !== value)) return false
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node))
}

function matchesTerm({ matchExpressions, matchFields }: NodeSelectorTerm, node: NodeObject): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false // as Kubernetes reads an empty term
  const fields = { 'metadata.name': node.name }
  return (
    matchExpressions.every((each) => matches(each, node.labels)) &&
    matchFields.every((each) => matches(each, fields))
  )
}

function matches(
  { key, operator, values }: NodeSelectorTerm['matchExpressions'][number],
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key]! : undefined
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0])
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0])
    default:
      return false
  }
}
