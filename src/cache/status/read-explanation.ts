import type { RecordStore } from '../../records/contract/record-store.js'
import {
  type DatasetExplanation,
  explainDataset,
  findNodesOf,
  foreseeEvictions,
  type NodeOutlook,
} from './explain-dataset.js'
import { findLayouts } from './find-layouts.js'

/** Number of the dataset's events to search for those that brought a copy or took it away. */
const MAX_EVENTS = 500

/**
 * Reads why a dataset is here, was evicted or was refused: on all nodes, or on `node` alone. Goes node by node, so that
 * a cluster of 100,000 copies takes only the memory of one node's.
 */
export async function readExplanation(
  record: RecordStore,
  dataset: string,
  { node, nowMs }: { readonly node?: string | undefined; readonly nowMs: number },
): Promise<DatasetExplanation> {
  const onNode = { dataset, node }
  const everywhere = await record.listCopies({ dataset }, nowMs)
  const copies = everywhere.filter((copy) => node === undefined || copy.node === node)
  const events = await record.listEvents({ ...onNode, limit: MAX_EVENTS })
  const outlooks = new Map<string, NodeOutlook>()
  for (const name of findNodesOf({ copies, events }))
    outlooks.set(name, foreseeEvictions(dataset, await record.listCopies({ node: name }, nowMs)))
  return explainDataset(dataset, {
    copies,
    events,
    outlooks,
    layouts: findLayouts(everywhere), // stripes on other nodes reveal those missing on one
    leases: await record.listLeases(onNode),
  })
}
