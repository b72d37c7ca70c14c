import { findCanonicalSource } from '../model/source-url.js'

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

/**
 * Whether pods of the namespace may name this URL. Compares what the URL means, since each source has many spellings.
 * Never true for files of the node, nor for text that names no source.
 */
export function mayNameSource(rules: NamespaceRules, namespace: string, url: string): boolean {
  const source = findCanonicalSource(url)
  if (source === undefined || source.startsWith('file:') || leadsUpwards(source)) return false
  const patterns = ['*', namespace].flatMap((key) =>
    Object.hasOwn(rules.sources, key) ? rules.sources[key]! : [],
  )
  const isModel = source.startsWith('hf://') && !source.startsWith('hf://datasets/')
  const spellings = isModel ? [source, source.replace('hf://', 'hf://models/')] : [source]
  return patterns.some((pattern) =>
    pattern.endsWith('*')
      ? spellings.some((spelling) => spelling.startsWith(pattern.slice(0, -1)))
      : findCanonicalSource(pattern) === source,
  )
}

/** Whether a web server may read `..` in the path: some decode escaped slashes and dots before they look for it. */
function leadsUpwards(source: string): boolean {
  if (!/^https?:/.test(source)) return false
  const path = source
    .replace(/[?#].*$/s, '')
    .replace(/%(?:25)*(2e|2f|5c)/gi, (_, hexadecimal: string) => decodeURIComponent(`%${hexadecimal}`))
  return path.split(/[/\\]/).some((name) => name.replace(/;.*$/s, '') === '..') // `..;x`: a parameter of the name
}
