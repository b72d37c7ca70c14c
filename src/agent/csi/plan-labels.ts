import type { CopyUse } from '../../model/copy.js'

/** Most labels that dsc has on a node: every watcher of nodes gets the whole object when one changes. */
export const MAX_LABELS = 32
/** The names that Kubernetes allows after the slash of a label. */
const LABEL_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const READY = 'ready'

/** Whether a label can have the name of this dataset. */
export function isLabelName(dataset: string): boolean {
  return LABEL_NAME.test(dataset)
}

/**
 * The changes of a node's labels by which it names the datasets it has: `dsc.io/flowers: ready`, null for a label that
 * goes. A label stays while its copy does; free places go to what was used last. Whole copies count, stripes do not.
 * `shown`: datasets whose names everybody who reads nodes may learn.
 */
export function planLabels(options: {
  readonly driver: string
  readonly labels: Readonly<Record<string, string>>
  readonly copies: readonly Pick<CopyUse, 'dataset' | 'state' | 'stripe' | 'lastUsedAtMs'>[]
  readonly shown: ReadonlySet<string>
}): Readonly<Record<string, typeof READY | null>> {
  const { driver, labels, copies, shown } = options
  const isOurs = (label: string) => label.startsWith(`${driver}/`) && labels[label] === READY
  const ready = copies
    .filter(({ state, stripe, dataset }) => state === READY && !stripe && shown.has(dataset))
    .filter(({ dataset }) => isLabelName(dataset))
    .toSorted((a, b) => b.lastUsedAtMs - a.lastUsedAtMs || (a.dataset < b.dataset ? -1 : 1))
    .map(({ dataset }) => `${driver}/${dataset}`)
    .filter((label) => isOurs(label) || !(label in labels)) // what somebody else has set stays
  const [kept, others] = [ready.filter(isOurs), ready.filter((label) => !isOurs(label))]
  const wanted = new Set([...new Set([...kept, ...others])].slice(0, MAX_LABELS))
  const gone = Object.keys(labels).filter((label) => isOurs(label) && !wanted.has(label))
  const added = [...wanted].filter((label) => !isOurs(label))
  return Object.fromEntries([
    ...gone.map((label) => [label, null] as const),
    ...added.map((label) => [label, READY] as const),
  ])
}
