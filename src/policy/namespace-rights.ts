import { findCanonicalSource } from '../model/source-url.js'

/** The rights of namespaces on Kubernetes. Each field says what holds for a name that is missing from it. */
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
  return patterns.some((pattern) =>
    pattern.endsWith('*')
      ? spellLike(pattern, source).startsWith(pattern.slice(0, -1))
      : findCanonicalSource(pattern) === source,
  )
}

/** The canonical text of a model lacks `models/`, which a pattern may have. */
function spellLike(pattern: string, source: string): string {
  const isModel = source.startsWith('hf://') && !source.startsWith('hf://datasets/')
  return isModel && pattern.startsWith('hf://models/') ? source.replace('hf://', 'hf://models/') : source
}

/** Passes after which text that still has escapes is refused: servers decode once or twice. */
const MAX_DECODES = 4

/** Whether a web server may read `..` in the path: some decode escapes before they look for it, even twice. */
function leadsUpwards(source: string): boolean {
  if (!/^https?:/.test(source)) return false
  let path = source.replace(/[?#].*$/s, '')
  for (let pass = 0; pass < MAX_DECODES; pass++) {
    const decoded = path.replace(/%(?:25)*([0-9a-f]{2})/gi, (_, hexadecimal: string) =>
      String.fromCharCode(Number.parseInt(hexadecimal, 16)),
    )
    if (decoded === path) return path.split(/[/\\]/).some((name) => name.replace(/;.*$/s, '') === '..') // `..;x`: a parameter
    path = decoded
  }
  return true
}
