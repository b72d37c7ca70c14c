import { DscError } from '../../failure/dsc-error.js'
import { redactUrl } from '../../failure/redact.js'
import { type Dataset, deriveDatasetName, isSameSource } from '../../model/dataset.js'
import { findClosest } from '../../model/find-closest.js'
import { formatNames } from '../../model/format-names.js'
import { canonicalizeSource } from '../../model/source-url.js'
import { mayNameSource, mayReadDataset, type NamespaceRules } from '../../policy/namespace-rights.js'
import { CsiRefusal } from './csi-failure.js'

/** Most datasets that a refusal names. */
const MAX_NAMED = 8

/** The datasets that pods can ask for. */
export interface Catalog {
  /** Those of dsc.yaml. Pods cannot ask for what others have prepared by its URL, which may be private. */
  readonly declared: readonly Dataset[]
  readonly rules: NamespaceRules
}

/**
 * The dataset that a pod of `namespace` names, by its name in dsc.yaml or by a URL. Throws DATASET_UNKNOWN with the
 * nearest names that this namespace may read, USAGE for what is no URL, and a refusal for what it may not read.
 */
export function chooseDataset(catalog: Catalog, namespace: string, raw: string): Dataset {
  const { declared, rules } = catalog
  const isUrl = raw.includes('://')
  if (isUrl) requireSource(raw)
  const found = declared.filter(({ name, source }) => (isUrl ? isSameSource(source, raw) : name === raw))
  const readable = found.find(({ name }) => mayReadDataset(rules, namespace, name))
  if (readable) return readable
  if (found.length > 0) {
    throw new CsiRefusal(
      'PERMISSION_DENIED',
      `namespace ${JSON.stringify(namespace)} may not read ${redactUrl(raw)}; try: namespaces: of ${found[0]!.name} in the agents' dsc.yaml`,
    )
  }
  if (isUrl) {
    requireNameable(rules, namespace, raw)
    return { name: deriveDatasetName(raw), source: raw, include: [], exclude: [] }
  }
  const usable = declared.map(({ name }) => name).filter((name) => mayReadDataset(rules, namespace, name))
  const hint = adviseName(findClosest(raw, usable), usable)
  throw new DscError('DATASET_UNKNOWN', `no dataset is called ${JSON.stringify(raw)}`, { hint })
}

function adviseName(near: string | undefined, usable: readonly string[]): string {
  if (near !== undefined) return `dataset: ${near}`
  const declared = "datasets: of the agents' dsc.yaml"
  return usable.length > 0
    ? `one of ${formatNames(usable, MAX_NAMED)} (${declared})`
    : `${declared} declares them`
}

/** Refuses a URL that pods of the namespace may not name. */
export function requireNameable(rules: NamespaceRules, namespace: string, url: string): void {
  if (mayNameSource(rules, namespace, url)) return
  throw new CsiRefusal(
    'PERMISSION_DENIED',
    `namespace ${JSON.stringify(namespace)} may not name the source ${redactUrl(url)}; try: agent.csi.sources in the agents' dsc.yaml`,
  )
}

/** Throws USAGE for a URL that names no source. */
export function requireSource(url: string): void {
  try {
    canonicalizeSource(url)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('USAGE', `volumeAttributes.dataset: ${error.message}`, { cause: error })
  }
}
