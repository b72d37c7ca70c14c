import { measureOwnNode } from '../cache/status/measure-own-node.js'
import { describeStatus } from '../cache/status/status-json.js'
import { readStatus } from '../cache/status/status-snapshot.js'
import { type CallOptions, openSurroundings } from './surroundings.js'

/** What is looked at. */
export interface StatusOptions extends CallOptions {
  /** Only this node. */
  readonly node?: string
  /** Only copies of this dataset. */
  readonly dataset?: string
}

type Described = ReturnType<typeof describeStatus>

/** Nodes, copies, leases and transfers, with the names of `dsc status --json`. Times are ISO 8601, sizes bytes. */
export interface Status extends Omit<Described, 'copies'> {
  readonly copies: readonly CopyStatus[]
}

/** One copy of a dataset on one node. */
export type CopyStatus = Described['copies'] extends Iterator<infer One> ? One : never

/** Reads once what `dsc status` shows. Rejects with a DscError, whose `code` says what is wrong. */
export async function status(options: StatusOptions = {}): Promise<Status> {
  const surroundings = openSurroundings(options)
  const { node, dataset } = options
  try {
    const record = await surroundings.openRecord()
    const nowMs = surroundings.nowMs()
    const filter = { ...(node !== undefined && { node }), ...(dataset !== undefined && { dataset }) }
    const ownNode = await measureOwnNode(await surroundings.config(), nowMs)
    const snapshot = await readStatus(record, filter, { nowMs, ownNode })
    const described = describeStatus(snapshot)
    return { ...described, copies: [...described.copies] }
  } finally {
    await surroundings.close()
  }
}
