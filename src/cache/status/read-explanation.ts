import type { EvictionOrder } from '../../policy/eviction-order.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { type DatasetExplanation, explainDataset, findArrivalMs, findNodesOf } from './explain-dataset.js'
import { findLayouts } from './find-layouts.js'

/** Number of the dataset's events to search for those that brought a copy or took it away. */
const MAX_EVENTS = 500

/** Number of nodes whose order of eviction is shown. */
const SHOWN_NODES = 10
/** Number of copies shown of each: the first to be evicted. */
const SHOWN_VICTIMS = 5

/**
 * Reads why a dataset is here, was evicted or was refused: on all nodes, or on `node` alone. The order of eviction is
 * read on `outlooks` nodes, those of the newest copies first.
 */
export async function readExplanation(
  record: Pick<RecordStore, 'foreseeOrder' | 'listCopies' | 'listEvents' | 'listLeases'>,
  dataset: string,
  given: { readonly node?: string | undefined; readonly nowMs: number; readonly outlooks?: number },
): Promise<DatasetExplanation> {
  const { node, nowMs } = given
  const onNode = { dataset, node }
  const everywhere = await record.listCopies({ dataset }, nowMs)
  const copies = everywhere.filter((copy) => node === undefined || copy.node === node)
  const events = await record.listEvents({ ...onNode, limit: MAX_EVENTS })
  const outlooks: EvictionOrder[] = []
  const newestFirst = copies.toSorted((a, b) => findArrivalMs(b) - findArrivalMs(a))
  for (const name of findNodesOf({ copies: newestFirst, events }).slice(0, given.outlooks ?? SHOWN_NODES))
    outlooks.push(await record.foreseeOrder({ node: name, dataset, limit: SHOWN_VICTIMS }, nowMs))
  return explainDataset(dataset, {
    copies,
    events,
    outlooks,
    layouts: findLayouts(everywhere), // stripes on other nodes reveal those missing on one
    leases: await record.listLeases(onNode),
  })
}
