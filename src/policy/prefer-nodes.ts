/** The scheduler compares every node with every one of them. */
const MAX_HOSTNAMES = 16

/** A term of a pod's preferred node affinity: nodes with a label of one of these values. */
export interface NodePreference {
  readonly weight: number
  readonly preference: {
    readonly matchExpressions: readonly {
      readonly key: string
      readonly operator: 'In'
      readonly values: readonly string[]
    }[]
  }
}

/**
 * Prefers nodes that have all of these labels, key → values of which one suffices. `weight`: 1 to 100, against other
 * preferences.
 */
export function preferLabels(
  labels: Readonly<Record<string, readonly string[]>>,
  weight = 100,
): NodePreference {
  const matchExpressions = Object.entries(labels).map(([key, values]) => ({
    ...{ key, values },
    operator: 'In' as const,
  }))
  return { weight, preference: { matchExpressions } }
}

/** Prefers the first 16 of these nodes; undefined without any. `weight` as in `preferLabels`. */
export function preferNodes(hostnames: readonly string[], weight?: number): NodePreference | undefined {
  if (hostnames.length === 0) return undefined
  return preferLabels({ 'kubernetes.io/hostname': hostnames.slice(0, MAX_HOSTNAMES) }, weight)
}

/** The `nodeAffinity` of a pod that prefers these nodes, as JSON in one line: YAML takes it anywhere. `{}` prefers none. */
export function formatAffinity(nodes: readonly string[]): string {
  const preferred = preferNodes(nodes)
  return JSON.stringify(preferred ? { preferredDuringSchedulingIgnoredDuringExecution: [preferred] } : {})
}
