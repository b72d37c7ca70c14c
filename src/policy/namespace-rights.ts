/** Who may have what on Kubernetes. Anything that is not named here is as the comments of the fields say. */
export interface NamespaceRules {
  /** Dataset → namespaces whose pods may read it. A dataset that is missing here: every namespace. */
  readonly datasets: Readonly<Record<string, readonly string[]>>
  /** Namespace, or `*` for every one → URLs that its pods may name; a final `*` stands for any rest. Default: none. */
  readonly sources: Readonly<Record<string, readonly string[]>>
}

/** Whether pods of the namespace may read a dataset of dsc.yaml. */
export function mayReadDataset(rules: NamespaceRules, namespace: string, dataset: string): boolean {
  const { datasets } = rules
  return !Object.hasOwn(datasets, dataset) || datasets[dataset]!.includes(namespace)
}

/** Whether pods of the namespace may name this URL. Never one of the node's own files. */
export function mayNameSource(rules: NamespaceRules, namespace: string, url: string): boolean {
  if (/^file:/i.test(url)) return false
  const patterns = ['*', namespace].flatMap((key) =>
    Object.hasOwn(rules.sources, key) ? rules.sources[key]! : [],
  )
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? url.startsWith(pattern.slice(0, -1)) : url === pattern,
  )
}
